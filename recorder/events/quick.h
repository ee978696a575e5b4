// The fast path of the heap, inlined in the hooks: in sampled mode most events change this thread's
// counters and nothing else. All others take the slow path (heap.h), which decides again. Exact
// mode has its own: exact_quick.h.
//
// Whether a thread may take the fast path is part of its state, and is decided again each time the
// thread publishes its totals: not with rules of --fail for the heap, not within a MiB of a limit.
// A fork resets the state (thread_state.h).
//
// As in heap.h, an allocation is decided before the real call and counted after it, and a free is
// counted before the real call.
#pragma once

#include "recorder/state/counters.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

// Whether a block of `bytes` is neither large nor sampled. If it is either, the slow path calls the
// sampler again.
inline bool passes_quickly(ThreadState& thread, std::uint64_t bytes) noexcept {
  return bytes < g_state.large_bytes.load(std::memory_order_relaxed) &&
         thread.sampler.passes(bytes);
}
inline void count_quick_allocation(InHook hook, ThreadState& thread, std::uint64_t bytes,
                                   std::uint64_t usable_bytes) noexcept {
  session::SpaceCounters& heap = thread.lane->spaces[static_cast<std::size_t>(Space::heap)];
  add_own(heap.allocated_bytes, bytes);
  add_own(heap.allocated_count, std::uint64_t{1});
  add_own(heap.usable_allocated_bytes, usable_bytes);
  add_own(thread.unpublished[static_cast<std::size_t>(Space::heap)],
          static_cast<std::int64_t>(usable_bytes));
  maybe_publish(hook, thread, Space::heap);
}

// False: `block` is not on record.
inline bool may_be_recorded(const void* block) noexcept {
  return g_state.may_be_recorded(reinterpret_cast<std::uint64_t>(block));
}
inline void count_quick_release(InHook hook, ThreadState& thread,
                                std::uint64_t usable_bytes) noexcept {
  session::SpaceCounters& heap = thread.lane->spaces[static_cast<std::size_t>(Space::heap)];
  add_own(heap.freed_count, std::uint64_t{1});
  add_own(heap.usable_freed_bytes, usable_bytes);
  add_own(thread.unpublished[static_cast<std::size_t>(Space::heap)],
          -static_cast<std::int64_t>(usable_bytes));
  maybe_publish(hook, thread, Space::heap);
}

}  // namespace oomrec::recorder
