// The coarse time of a thread's events. Whoever reads it runs the tick when that is due.
#pragma once

#include "common/system/hook_scope.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

// Reads the coarse clock for the thread's events, and ticks when it is time.
void read_clock(InHook, ThreadState&) noexcept;

// Reads the clock at every 16th call, for events that take no other slow path.
inline void maybe_read_clock(InHook hook, ThreadState& thread) noexcept {
  if (thread.events_to_clock-- == 0) [[unlikely]] {
    thread.events_to_clock = 15;
    read_clock(hook, thread);
  }
}

}  // namespace oomrec::recorder
