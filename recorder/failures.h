// Refusals: recorded with all their evidence, told in a bundle when it is their turn.
//
// A refusal is known by stack, API and space; a repeat only counts. A program may be refused a
// million times a second and go on: a known stack with no bundle due costs a stack walk and a few
// stores; evidence is read anew at most ten times a second.
#pragma once

#include <atomic>
#include <cstdint>

#include "recorder/hook_scope.h"
#include "recorder/recorder.h"
#include "recorder/refusal.h"

namespace oomrec::recorder {

// When a bundle may be written: one at a time, the first three at once, then none before fifty
// times the last one's writing time has passed (so that writing costs less than 2 %), and never
// more than twenty a process, of which the last is kept for its end. Times in ns, of any clock.
//
// Only the thread that writes a bundle says that it ended; others may ask at that moment, and are
// answered as before it or as after it.
class BundleRate {
 public:
  static constexpr std::uint32_t kAtOnce = 3;
  static constexpr std::uint32_t kMost = 20;
  static constexpr std::uint64_t kPauseFactor = 50;

  bool due(std::uint64_t now_ns) const noexcept {
    const std::uint32_t written = written_.load(std::memory_order_relaxed);
    if (written + 1 >= kMost) return false;
    return written < kAtOnce || now_ns >= due_ns_.load(std::memory_order_relaxed);
  }
  bool due_at_the_end() const noexcept { return written_.load(std::memory_order_relaxed) < kMost; }

  void ended(std::uint64_t began_ns, std::uint64_t now_ns) noexcept {
    due_ns_.store(now_ns + kPauseFactor * (now_ns - began_ns), std::memory_order_relaxed);
    ended_ns_.store(now_ns, std::memory_order_relaxed);
    written_.fetch_add(1, std::memory_order_relaxed);
  }
  std::uint64_t ended_ns() const noexcept { return ended_ns_.load(std::memory_order_relaxed); }

  void forget() noexcept {
    written_.store(0, std::memory_order_relaxed);
    ended_ns_.store(0, std::memory_order_relaxed);
    due_ns_.store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint32_t> written_{0};
  std::atomic<std::uint64_t> ended_ns_{0};
  std::atomic<std::uint64_t> due_ns_{0};  // from the fourth bundle on
};

// The process ends with `status`, or is replaced: the last refusal gets its bundle, if it is in
// none.
void tell_last_failure(InHook, int status) noexcept;

// A bundle that tells what may come, `near_limit` or `pressure`. False: none is due now, or none
// could be written.
bool warn(InHook, Trigger) noexcept;

// What became of the process after its last bundle, written there once. On the tick, when it has
// lived on for ten seconds; returns at once.
void note_recovery(InHook, std::uint64_t now_ns) noexcept;
// When it ends with `status`: it died of its last refusal, or got over it. Returns within the
// bundle's time bound.
void complete_outcome_at_end(InHook, int status) noexcept;
// The same in other words: by a signal.
void complete_outcome(InHook, OutcomeKind, std::int32_t value) noexcept;

// A GPU's request was served: if it is the refused one of this thread, made again, that refusal did
// no harm, and its bundle says so. Nanoseconds, unless one is open.
void note_device_served(InHook, Api, std::uint64_t bytes) noexcept;
// PyTorch has a block on the device: what this thread was refused meanwhile did no harm, and is
// told so.
void note_torch_served(InHook, std::uint32_t device) noexcept;
// Nothing helped: this thread's provisional refusal on the device is told now, with the device's
// figures as they are now. False: there is none.
bool confirm_refusal(InHook, std::uint32_t device) noexcept;

// The process is about to die of the crash in the session's header, which follows from `refusal`:
// its bundle is completed, or written. Returns within three times the bundle's time bound: where a
// disk hangs, what is left is the session.
void tell_crash(InHook, const Refusal&) noexcept;

// Whether the last refusal on record is told in a bundle, whose recording has those before it: the
// session is not needed any more.
bool last_failure_told() noexcept;

// After a fork.
void forget_failures(InHook) noexcept;

}  // namespace oomrec::recorder
