// Periodic work without a thread of our own: it rides on the slow path of events, at most ten times
// a second while the program allocates.
#pragma once

#include <cstdint>

#include "common/session/layout.h"
#include "common/system/hook_scope.h"
#include "recorder/threads.h"

namespace oomrec::recorder {

// Reads the coarse clock for the thread's events and ticks when it is time.
void read_clock(InHook, ThreadState&) noexcept;

// Where no other slow path comes by: reads the clock at every 16th call.
inline void maybe_read_clock(InHook hook, ThreadState& thread) noexcept {
  if (thread.events_to_clock-- == 0) [[unlikely]] {
    thread.events_to_clock = 15;
    read_clock(hook, thread);
  }
}

// Exact recording has used up its budget: from here on a sample, and the session says so. What is
// in the tables stays exact.
void fall_back_to_sampling() noexcept;

// A table is full: exact falls back to sampling, and there is room again; sampling takes half as
// many as before, once a tick at most.
inline constexpr std::uint64_t kCoarsestInterval = std::uint64_t{64} << 20;
void sample_coarser() noexcept;

// After a fork.
void forget_ticks(InHook) noexcept;

}  // namespace oomrec::recorder
