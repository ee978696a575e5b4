// The recorder's own memory, from system calls that bypass the hooks.
#pragma once

#include <sys/mman.h>

#include <cstddef>

#include "common/system/syscalls.h"

namespace oomrec::system {

// Private zeroed memory; nullptr if there is none.
inline void* map_private(std::size_t bytes) noexcept {
  const long result = call(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return result < 0 && result > -4096 ? nullptr : reinterpret_cast<void*>(result);
}

// Reserves address space, which counts against no limit on data until commit_reserved() makes it
// memory. nullptr or false: failed.
inline void* reserve_private(std::size_t bytes) noexcept {
  const long result =
      call(SYS_mmap, nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return result < 0 && result > -4096 ? nullptr : reinterpret_cast<void*>(result);
}
inline bool commit_reserved(void* from, std::size_t bytes) noexcept {
  return call(SYS_mprotect, from, bytes, PROT_READ | PROT_WRITE) == 0;
}

// Allocates the pages of a mapping in advance, with one system call instead of a fault for each.
// Page-aligned. 0, or -errno: -EINVAL before Linux 5.14, -EFAULT if the disk is full.
inline long populate(void* from, std::size_t bytes) noexcept {
  constexpr long kPopulateWrite = 23;  // MADV_POPULATE_WRITE, for older headers
  return call(SYS_madvise, from, bytes, kPopulateWrite);
}

inline void unmap(void* address, std::size_t bytes) noexcept { call(SYS_munmap, address, bytes); }

}  // namespace oomrec::system
