// The recorder's own memory, from system calls that bypass the hooks.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/system/syscalls.h"

namespace oomrec::system {

// What is mapped here now. The kernel does not tell it from the program's own memory, which a
// second `oomrec attach` must do. What does not fit is not in the list.
struct OwnMemory {
  struct Range {
    std::atomic<std::uint64_t> start, end;
  };
  static constexpr std::size_t kMost = 256;
  Range ranges[kMost];

  void add(std::uint64_t start, std::size_t bytes) noexcept {
    for (Range& range : ranges) {
      std::uint64_t none = 0;
      if (range.start.load(std::memory_order_relaxed) != 0 ||
          !range.start.compare_exchange_strong(none, start, std::memory_order_relaxed))
        continue;
      range.end.store(start + bytes, std::memory_order_relaxed);
      return;
    }
  }
  void remove(std::uint64_t start) noexcept {
    for (Range& range : ranges)
      if (range.start.load(std::memory_order_relaxed) == start)
        range.start.store(0, std::memory_order_relaxed);
  }
};
inline constinit OwnMemory g_own_memory{};

enum class Pages : int {
  untouched = 0,
  populated = MAP_POPULATE,  // for memory that is about to be touched all over: no fault for each
};

// Private zeroed memory; nullptr if there is none.
inline void* map_private(std::size_t bytes, Pages pages = Pages::untouched) noexcept {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | static_cast<int>(pages);
  const long result = call(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (result < 0 && result > -4096) return nullptr;
  g_own_memory.add(static_cast<std::uint64_t>(result), bytes);
  return reinterpret_cast<void*>(result);
}

// Reserves address space, which counts against no limit on data until commit_reserved() makes it
// memory. nullptr or false: failed.
inline void* reserve_private(std::size_t bytes) noexcept {
  const long result =
      call(SYS_mmap, nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (result < 0 && result > -4096) return nullptr;
  g_own_memory.add(static_cast<std::uint64_t>(result), bytes);
  return reinterpret_cast<void*>(result);
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

inline void unmap(void* address, std::size_t bytes) noexcept {
  g_own_memory.remove(reinterpret_cast<std::uint64_t>(address));
  call(SYS_munmap, address, bytes);
}

}  // namespace oomrec::system
