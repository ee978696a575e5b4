// Periodic work without a thread of our own, and its checkpoints: part of the slow path of events,
// at most ten times a second while the program allocates.
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

// A checkpoint: the largest holders at a few hundred moments of the process' life, for views over
// time and for what grows (docs/how-it-works.md). Costs the tick less than 100 µs, however many
// holders there are (docs/overhead.md).
//
// On the tick: adds a checkpoint of tick number `tick`, if it gets one. One thread at a time.
void add_checkpoint(InHook, std::uint32_t tick, std::uint64_t now) noexcept;

void reset_checkpoints_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
