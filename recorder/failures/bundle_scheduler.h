// The bundles of this process: when one may be written, one at a time, and what became of the
// process after the last.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"
#include "recorder/helper/from_process.h"
#include "recorder/state/failed_request.h"

namespace oomrec::recorder {

// A bundle that was written, or completed.
struct WrittenBundle {
  std::uint64_t bundle = 0;  // its number in the process; 0: there is none
  bool texts = false;        // all of the texts are in it
};

bool bundle_is_due(std::uint64_t now_ns) noexcept;

struct BundleRequest {
  bool last_chance = false;  // whoever asks has no later chance: what the rate keeps for it, too
  bool reported = false;     // an earlier try has reported it
  std::uint64_t deadline_ns = 0;  // until which another thread's bundle, under way, is waited for
};
inline constexpr BundleRequest kWhenDue{};

// How long a bundle may take.
unsigned bound_seconds() noexcept;
// For whoever waits for a bundle: the time that it may take, from now on.
std::uint64_t writing_deadline_ns() noexcept;

// Waits until no bundle is being written. False: at the deadline one still is.
bool wait_for_writer(std::uint64_t deadline_ns) noexcept;

// Writes the bundle of cause.failure (0: of none), under the label that its stack or this thread is
// under, unless it was asked for. Its number; 0: not written, for it was not due, or another is
// being written.
WrittenBundle write_bundle(InHook, bundle::Cause, const BundleRequest&) noexcept;

// For whoever asks for a bundle, and waits for it.
WrittenBundle write_requested(InHook, const bundle::Cause&) noexcept;

// The cause of the failure in entry `entry`.
bundle::Cause cause_of(std::uint32_t entry, const FailedRequest&) noexcept;

// Number of the bundle that tells the failure; 0: there is none.
std::uint32_t bundle_of(const FailedRequest&) noexcept;

// The failure could not be told; but it was reported.
bool is_reported(const FailedRequest&) noexcept;

// The last bundle tells it.
bool is_in_last_bundle(const FailedRequest&) noexcept;

// A repeat of what the last bundle tells, but the program had lived on in between.
bool is_stale(const FailedRequest&) noexcept;

// What became of the process after its last bundle, written there once. On the tick, when it has
// lived on for ten seconds; returns at once.
void note_recovery(InHook, std::uint64_t now_ns) noexcept;
// When it ends with `status`: it died of its last failure, or got over it. Returns within the
// bundle's time bound.
void complete_outcome_at_end(InHook, int status) noexcept;
// The same in other words: by a signal.
void complete_outcome(InHook, OutcomeKind, std::int32_t value) noexcept;

// The last bundle's failure did no harm. Where that cannot be written at once, because the bundle
// itself is still on its way, it is on the tick or at the end.
void recover(InHook) noexcept;

// The last bundle tells of this failure, and of the crash in the session's header that followed
// when this returns true.
bool complete_by_crash(InHook, const FailedRequest&, const BundleRequest&) noexcept;

// After a fork.
void reset_bundle_scheduler_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
