// The fast path of the heap in exact mode: a small block, a stack that the thread has had lately, a
// holder whose sum is cached in the lane. All others take the slow path (heap.h).
//
// Both functions first ask for everything that they need, and change nothing if something is
// missing; the slow path then decides again. Otherwise they make the changes of the slow path, in
// the same order, so that a reader after a SIGKILL finds the same. They call nothing that is not
// inlined, or end in a jump, so that no register needs to be saved for it.
//
// The clock is read, and what depends on time is checked, where the number of an event in the ring
// is a multiple of 16 (pause()). Whether a thread may take this path is decided there, too,
// as for quick.h.
#pragma once

#include "recorder/events/quick.h"

namespace oomrec::recorder {

// Whether an allocation of `bytes` may take this path.
inline bool is_small(const ThreadState& thread, std::uint64_t bytes) noexcept {
  return thread.exact_quick && bytes - 1 < session::kSmallBlockBytes - 1;
}

// Before an event on this path, in no scope: pauses where that is due.
void pause(ThreadState&) noexcept;
inline void maybe_pause(ThreadState& thread) noexcept {
  if (thread.ring.needs_begin()) [[unlikely]]
    pause(thread);
}

// Records the new `block` of a hook that ends in a jump to this function, in no scope: a stack that
// starts at this function's caller needs no step out of the hook. Returns `block`.
void* record_exactly(Api, void* block, std::uint64_t bytes, std::uint64_t usable_bytes) noexcept;

// Records a release. False: nothing was done.
bool release_quickly(InHook, ThreadState&, Api, std::uint64_t address,
                     std::uint64_t usable_bytes) noexcept;

}  // namespace oomrec::recorder
