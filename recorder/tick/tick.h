// Periodic work without a thread of our own: part of the slow path of events, at most ten times a
// second while the program allocates.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

// Runs the tick, unless another thread does. Set as Callbacks::tick.
void run_tick(InHook, ThreadState&, std::uint64_t now_ns) noexcept;

// For a process whose calls pass no hook (dlopen mode): runs the tick if it is due.
void tick(InHook) noexcept;

// While one holds, no tick runs. False: one is running.
class TickPause {
 public:
  TickPause() noexcept;
  ~TickPause();
  TickPause(const TickPause&) = delete;
  TickPause& operator=(const TickPause&) = delete;
  explicit operator bool() const noexcept { return holds_; }

 private:
  bool holds_;
};

void reset_ticks_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
