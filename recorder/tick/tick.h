// Periodic work without a thread of our own: it rides on the slow path of events, at most ten times
// a second while the program allocates.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

// The tick, unless another thread is at it. Set as Callbacks::tick.
void run_tick(InHook, ThreadState&, std::uint64_t now_ns) noexcept;

// A point of the time line and all else that rides on events, if it is due.
void tick(InHook) noexcept;

// After a fork.
void reset_ticks_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
