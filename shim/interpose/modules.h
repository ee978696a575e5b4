// The loaded modules. Takes a lock of the loader: never inside a hook of another function.
#pragma once

#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace oomrec::shim {

// A module's memory. To ask whether an address is in it is much cheaper than dladdr(), which
// compares the address with each symbol of its module.
struct ModuleRange {
  std::uint64_t start = UINT64_MAX, end = 0;

  explicit constexpr ModuleRange() noexcept = default;
  explicit ModuleRange(const dl_phdr_info& info) noexcept {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = info.dlpi_phdr[i];
      if (segment.p_type != PT_LOAD) continue;
      start = std::min<std::uint64_t>(start, info.dlpi_addr + segment.p_vaddr);
      end = std::max<std::uint64_t>(end, info.dlpi_addr + segment.p_vaddr + segment.p_memsz);
    }
  }
  bool contains(const void* address) const noexcept {
    const auto at = reinterpret_cast<std::uint64_t>(address);
    return start <= at && at < end;
  }
};

using VisitModule = int(dl_phdr_info* info, std::size_t bytes, void* data);

// dl_iterate_phdr, looked up by name: an import would let hooks call it, too.
void for_each_module(VisitModule* visit, void* data) noexcept;

}  // namespace oomrec::shim
