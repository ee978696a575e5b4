// Events of the heap: a block is given to the program, or taken back.
//
//   allocate   decide (exact, large, or sampled) → stack → live block → holder → ring → counters
//   free       live block → holder → ring → counters
//
// PyTorch's blocks come here, too, in a space of their own.
#pragma once

#include <cstdint>

#include "common/session/vocabulary.h"
#include "common/system/hook_scope.h"
#include "recorder/state/request.h"

namespace oomrec::recorder {

// A block that now belongs to the program. `bytes` as asked for; `usable_bytes` as the allocator
// counts it (heap); 0 where that is not known.
struct Block {
  Space space;
  Api api;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t usable_bytes;
  std::uint32_t device = 0;  // of PyTorch's: entry in `devices`
};

// Before the first event, if it is known: the allocator's blocks are 2^shift bytes apart, or no
// larger than half of that (4 or 5: session/layout.h). Makes exact recording of small blocks cheap.
void note_block_distance(std::uint32_t shift) noexcept;

// False: the request would pass the soft limit, or a rule of --fail speaks of it, and it must be
// refused with ENOMEM. Called before the real function. `counted_bytes`: what it would add to what
// the limit counts.
bool admits(InHook, Request&, std::uint64_t counted_bytes) noexcept;

void on_allocate(InHook, const Block&) noexcept;

// A block is about to go back, called *before* the real free (another thread may get the address at
// once). The result restores it when a realloc fails.
struct Released {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t usable_bytes = 0;
  std::uint32_t holder = 0;
  std::uint32_t node = 0;  // instead of the holder, where it was in the side table
  std::uint32_t weight = 0;
  std::uint32_t birth_s = 0;
};
Released on_free(InHook, Space, Api, std::uint64_t address, std::uint64_t usable_bytes,
                 std::uint32_t device = 0) noexcept;
void restore(InHook, Space, const Released&) noexcept;

// In a signal handler that interrupted the recorder: totals only. usable_bytes as above.
void count_allocate(Space, std::uint64_t bytes, std::uint64_t usable_bytes) noexcept;
void count_free(Space, std::uint64_t usable_bytes) noexcept;

}  // namespace oomrec::recorder
