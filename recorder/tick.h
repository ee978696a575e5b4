// Periodic work without a thread of our own: it rides on the slow path of events, at most ten times
// a second while the program allocates.
#pragma once

#include <cstdint>

#include "recorder/hook_scope.h"
#include "recorder/session/layout.h"
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

// Keeps the time line at a constant size: `kPoints` points, each a power of two of ticks apart.
// When the table is full the distance doubles, and from then on each new point takes the place of
// one that now lies too close. So the table is not in order of time: readers sort. A point whose
// time is 0 is being written.
class TimeLine {
 public:
  static constexpr std::uint32_t kPoints = 1200;

  // Whether tick number `tick` gets a point.
  bool wants(std::uint32_t tick) const noexcept { return tick % spacing_ == 0; }
  std::uint32_t spacing() const noexcept { return spacing_; }

  // The place of its point: an index below count(), or count() itself for a new one.
  std::uint32_t place(std::uint32_t tick) noexcept {
    if (count_ < kPoints) {
      ticks_[count_] = tick;
      return count_;
    }
    while (true) {
      for (; cursor_ < kPoints; ++cursor_) {
        if (ticks_[cursor_] % spacing_ != 0) {
          ticks_[cursor_] = tick;
          return cursor_++;
        }
      }
      cursor_ = 0;
      spacing_ *= 2;
      if (!wants(tick)) return kPoints;  // too close itself, by now
    }
  }
  std::uint32_t count() const noexcept { return count_; }
  void added() noexcept { ++count_; }
  void forget() noexcept {
    count_ = cursor_ = 0;
    spacing_ = 1;
  }

 private:
  std::uint32_t count_ = 0;
  std::uint32_t cursor_ = 0;
  std::uint32_t spacing_ = 1;
  std::uint32_t ticks_[kPoints] = {};
};

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
