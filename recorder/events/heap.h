// Events of the heap: blocks allocated and freed.
//
//   allocate   decide (exact, large, or sampled) → stack → live block → holder → ring → counters
//   free       live block → holder → ring → counters
//
// PyTorch's blocks are recorded here, too, in their own space.
#pragma once

#include <cstdint>

#include "common/session/functions.h"
#include "common/system/hook_scope.h"
#include "recorder/state/request.h"

namespace oomrec::recorder {

// A block that now belongs to the program: `bytes` as requested, `usable_bytes` as the allocator
// counts them (heap; 0: unknown), and behind them `gap_bytes` that its alignment keeps free.
//
// A request, a call and an event count what was requested. Totals count usable bytes; a holder also
// the gaps, as far as its blocks are recorded: they are what such blocks take up.
struct Block {
  Space space;
  Api api;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t usable_bytes;
  std::uint32_t device = 0;  // for PyTorch's blocks: entry in `devices`
  std::uint16_t gap_bytes = 0;

  std::uint64_t taken_bytes() const noexcept {
    return (usable_bytes != 0 ? usable_bytes : bytes) + gap_bytes;
  }
};

// Call before the first event if the allocator is known to place blocks 2^shift bytes apart, or to
// make them no larger than half of that (4 or 5: session/layout.h). Makes exact recording of small
// blocks cheap.
void set_block_distance(std::uint32_t shift) noexcept;

// False: the request must fail with ENOMEM, because it would exceed the soft limit, or because of a
// rule of --fail. Called before the real function. `counted_bytes`: the bytes that would count
// against the limit.
bool admits(InHook, Request&, std::uint64_t counted_bytes) noexcept;

void on_allocate(InHook, const Block&) noexcept;

// A block is about to be freed. Called *before* the real free: another thread may get the address
// at once. The result restores it when a realloc fails.
struct Released {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t usable_bytes = 0;
  std::uint32_t holder = 0;
  std::uint32_t node = 0;  // replaces the holder for a block of the side table
  std::uint32_t weight = 0;
  std::uint32_t birth_s = 0;
  std::uint16_t gap_bytes = 0;  // part of `bytes`, which are those that its holder counted
};
Released on_free(InHook, Space, Api, std::uint64_t address, std::uint64_t usable_bytes,
                 std::uint32_t device = 0) noexcept;
void restore(InHook, Space, const Released&) noexcept;
void end_release(InHook) noexcept;  // of a realloc to no bytes: no allocation follows

// In a signal handler that interrupted the recorder: totals only. usable_bytes as above.
void count_allocate(Space, std::uint64_t bytes, std::uint64_t usable_bytes) noexcept;
void count_free(Space, std::uint64_t usable_bytes) noexcept;

}  // namespace oomrec::recorder
