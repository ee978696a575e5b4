// Memory of the recorder's own, by system calls that pass no hook.
#pragma once

#include <sys/mman.h>

#include <cstddef>

#include "common/system/syscalls.h"

namespace oomrec::system {

// Private zeroed memory; nullptr when there is none to be had.
inline void* map_private(std::size_t bytes) noexcept {
  const long result = call(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return result < 0 && result > -4096 ? nullptr : reinterpret_cast<void*>(result);
}

// Address space alone, which counts against no limit of data, until open_reserved() makes it
// memory; nullptr, false: there is none to be had.
inline void* reserve_private(std::size_t bytes) noexcept {
  const long result =
      call(SYS_mmap, nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return result < 0 && result > -4096 ? nullptr : reinterpret_cast<void*>(result);
}
inline bool open_reserved(void* from, std::size_t bytes) noexcept {
  return call(SYS_mprotect, from, bytes, PROT_READ | PROT_WRITE) == 0;
}

// Takes the pages of a mapping before they are touched, at one system call instead of a fault each.
// 0, or -errno: -EINVAL before Linux 5.14, -EFAULT where a disk is full. Page-aligned.
inline long populate(void* from, std::size_t bytes) noexcept {
  constexpr long kPopulateWrite = 23;  // MADV_POPULATE_WRITE, for older headers
  return call(SYS_madvise, from, bytes, kPopulateWrite);
}

inline void unmap(void* address, std::size_t bytes) noexcept { call(SYS_munmap, address, bytes); }

}  // namespace oomrec::system
