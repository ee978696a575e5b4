// Refusals: recorded with all their evidence, told in a bundle when it is their turn.
//
// A refusal is known by stack, API and space; a repeat only counts. A program may be refused a
// million times a second and go on: a known stack with no bundle due costs a stack walk and a few
// stores; evidence is read anew at most ten times a second.
#pragma once

#include <cstdint>

#include "recorder/hook_scope.h"
#include "recorder/recorder.h"

namespace oomrec::recorder {

// When a bundle may be written: one at a time, the first three at once, then none before fifty
// times the last one's writing time has passed (so that writing costs less than 2 %), and never
// more than twenty a process, of which the last is kept for its end. Times in ns, of any clock.
class BundleRate {
 public:
  static constexpr std::uint32_t kAtOnce = 3;
  static constexpr std::uint32_t kMost = 20;
  static constexpr std::uint64_t kPauseFactor = 50;

  bool due(std::uint64_t now_ns) const noexcept {
    if (written_ + 1 >= kMost) return false;
    return written_ < kAtOnce || now_ns - ended_ns_ >= kPauseFactor * lasted_ns_;
  }
  bool due_at_the_end() const noexcept { return written_ < kMost; }

  void ended(std::uint64_t began_ns, std::uint64_t now_ns) noexcept {
    ++written_;
    ended_ns_ = now_ns;
    lasted_ns_ = now_ns - began_ns;
  }
  std::uint64_t ended_ns() const noexcept { return ended_ns_; }

 private:
  std::uint32_t written_ = 0;
  std::uint64_t ended_ns_ = 0;
  std::uint64_t lasted_ns_ = 0;
};

// The process ends with `status`, or is replaced: the last refusal gets its bundle, if it is in
// none.
void tell_last_failure(InHook, int status) noexcept;

// What became of the process after its last bundle, written there once. On the tick, when it has
// lived on for ten seconds; returns at once.
void note_recovery(InHook, std::uint64_t now_ns) noexcept;
// When it ends with `status`: it died of its last refusal, or got over it. Returns within the
// bundle's time bound.
void complete_outcome_at_end(InHook, int status) noexcept;

// Whether the last refusal on record is told in a bundle, whose recording has those before it: the
// session is not needed any more.
bool last_failure_told() noexcept;

// After a fork.
void forget_failures(InHook) noexcept;

}  // namespace oomrec::recorder
