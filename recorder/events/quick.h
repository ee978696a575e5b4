// The way of most events of the heap in sampled mode: they change this thread's totals and nothing
// else. Inlined in the hooks; every other event takes the way of recorder.h, which decides again.
//
// Whether a thread may take it is in its state, looked at whenever the thread tells the totals.
// There a limit counts as far away as long as a MiB is left; and a fork wipes the state
// (threads.h).
//
// An allocation is asked about before the real call and counted after it, a release is counted
// before the real call, as in recorder.h.
#pragma once

#include "recorder/state/counters.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

// The calling thread, if its events may take this way; else nullptr.
inline ThreadState* quick_thread() noexcept {
  return t_thread != nullptr && t_thread->quick ? t_thread : nullptr;
}

// Whether a block of `bytes` is neither large nor sampled. A no will be asked again, by the other
// way.
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

// False: nothing is recorded about `block`.
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
