// The loader: its modules, its dlsym, and a scope for calling it. Takes a lock of it: never inside
// a hook of another function.
#pragma once

#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/system/hook_scope.h"
#include "recorder/fault_injection/fault_injection.h"
#include "shim/interpose/next.h"

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

// The loader's dlsym; the process sees ours instead (gpu/lookup.cpp).
using Dlsym = void* (*)(void* library, const char* name);

// It resolves RTLD_NEXT relative to its caller: for us, the libraries after ours.
Dlsym real_dlsym() noexcept;

// A scope for calling the loader that leaves no trace in the program: errno, dlerror, --fail, the
// heap's totals.
class LoaderScope {
 public:
  LoaderScope() noexcept = default;
  ~LoaderScope() { g_next.dlerror(); }
  LoaderScope(const LoaderScope&) = delete;
  LoaderScope& operator=(const LoaderScope&) = delete;

  // The loader's allocations are part of this scope.
  const HookScope& scope() const noexcept { return scope_; }

 private:
  const KeepErrno keep_;
  const HookScope scope_;
  const recorder::FaultPause pause_;
};

}  // namespace oomrec::shim
