#include "tools/processes/attach/loader_list.h"

#include <elf.h>
#include <link.h>

#include "tools/processes/attach/remote_module.h"

namespace oomrec::tools::processes {
namespace {

constexpr std::size_t kMostModules = 100'000;  // a list that is being changed may have no end
constexpr std::size_t kMostNamespaces = 64;    // of dlmopen; glibc has 16

// Where the loader is mapped. A loader that was run by name (ld.so PROGRAM) is to the kernel the
// program itself, and has its program headers in its first page.
std::uint64_t loader_start(const RemoteMemory& memory) {
  if (const auto base = memory.auxiliary_value(AT_BASE); base.value_or(0) != 0) return *base;
  return memory.auxiliary_value(AT_PHDR).value_or(0) & ~std::uint64_t{4095};
}

}  // namespace

std::optional<std::vector<std::uint64_t>> loaded_dynamic_sections(const RemoteMemory& memory) {
  // glibc's r_debug; from 2.35 on, one for each namespace, chained.
  struct {
    ::r_debug base;
    std::uint64_t next;
  } debug{};
  std::uint64_t at = RemoteModule{memory, loader_start(memory), {}}.address_of("_r_debug");
  if (at == 0) return std::nullopt;
  std::vector<std::uint64_t> sections;
  for (std::size_t names = 0; at != 0 && names < kMostNamespaces; ++names) {
    if (!memory.read(at, debug) || debug.base.r_state != ::r_debug::RT_CONSISTENT)
      return std::vector<std::uint64_t>{};
    auto next = reinterpret_cast<std::uint64_t>(debug.base.r_map);
    while (next != 0) {
      ::link_map module{};
      if (!memory.read(next, module) || sections.size() == kMostModules)
        return std::vector<std::uint64_t>{};
      sections.push_back(reinterpret_cast<std::uint64_t>(module.l_ld));
      next = reinterpret_cast<std::uint64_t>(module.l_next);
    }
    at = debug.base.r_version >= 2 ? debug.next : 0;
  }
  return sections;
}

}  // namespace oomrec::tools::processes
