// Samples which stack runs while memory becomes resident that no recorded allocation explains:
// what an allocator touches of its reservation (recorder/live/growers.h).
//
// Only while there are reservations of 64 MiB that are usable as they are. Then a thread that reads
// the clock asks the kernel, every 10 ms on average, how much is resident: 5 us. A stack is
// captured once that has grown by a MiB. A new peak (ru_maxrss, 0.3 us) would not tell: of a
// program that a larger one started, it is that one's.
#pragma once

#include <cstdint>
#include <span>

#include "common/system/hook_scope.h"
#include "recorder/live/growers.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

// Smaller ones are not worth a look at their pages, or a sample.
inline constexpr std::uint64_t kReservedBytes = std::uint64_t{64} << 20;

// When the clock is read.
void maybe_sample_growth(InHook, ThreadState&, std::uint64_t now_ns) noexcept;

// `reserving`, a holder, has a new reservation. What grows until the next event is its own doing.
void on_reservation(InHook, ThreadState&, std::uint32_t reserving) noexcept;

// A look: samples once more, as it begins, and then takes all samples for itself.
class GrowthOfLook {
 public:
  GrowthOfLook(InHook, ThreadState*) noexcept;  // nullptr: without a stack
  ~GrowthOfLook();
  GrowthOfLook(const GrowthOfLook&) = delete;
  GrowthOfLook& operator=(const GrowthOfLook&) = delete;

  // Empty: there are none, or another thread is just sampling.
  std::span<const live::GrowthSamples::Sample> all() const noexcept;
  // Call it once what the look has found is counted as live: the next growth is from here on.
  void end() noexcept;

 private:
  const bool holds_;
};

// The holder to which growth is credited while this stack runs; 0: the tables have no room. Call it
// within a NodeScope.
std::uint32_t running_grower(InHook, ThreadState&) noexcept;

// Marks the nodes of all samples as in use. False: try again.
bool claim_growth() noexcept;

void reset_growth() noexcept;  // at the start of a session

}  // namespace oomrec::recorder
