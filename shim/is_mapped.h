// Whether memory is mapped everywhere in a range.
#pragma once

#include <sys/mman.h>

#include <cstdint>

#include "common/machine/page.h"
#include "common/system/syscalls.h"

namespace oomrec::shim {

// ENOMEM has two meanings for mprotect() and mlock(): a shortage, or a range with holes, which is
// misuse. msync(MS_ASYNC) does nothing but look for holes.
inline bool is_mapped(std::uint64_t address, std::uint64_t bytes) noexcept {
  const std::uint64_t start = machine::page_down(address);
  return system::call(SYS_msync, start, bytes + (address - start), MS_ASYNC) == 0;
}

}  // namespace oomrec::shim
