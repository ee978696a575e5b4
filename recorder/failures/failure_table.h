// The table of failures: each kind, with its evidence, is an entry of the session's `failures`.
// Also holds the latest failure, in case the process ends because of it.
//
// A kind is a combination of stack, API and space. Repeats are only counted. So are later kinds
// when the table is full (on_failure() adds those for which a bundle is due); probes take at
// most half of it.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"
#include "recorder/failures/evidence.h"
#include "recorder/state/failed_request.h"

namespace oomrec::recorder {

// Records the failure. Returns its entry, also in FailedRequest::entry (0: the table is full), and
// whether it is the first of its kind. A flood of new stacks shares evidence, unless it must be
// fresh.
struct RecordedFailure {
  std::uint32_t entry = 0;
  bool first = false;
};
RecordedFailure record_failure(InHook, FailedRequest&, EvidenceFrom) noexcept;

// Adds an entry for a failure that has none, unless the table is full.
void ensure_entry(InHook, FailedRequest&) noexcept;

// This bundle reports the after-shock, which has no entry.
void set_bundle(FailedRequest&, std::uint32_t bundle) noexcept;

// Adds another entry for a failure of a kind that was reported as harmless: this one is not. From
// now on repeats count there. Or one for a failure whose kind is not in the full table.
void add_new_entry(InHook, FailedRequest&) noexcept;

// The entry for the bundle of the process' last failure: its own, unless a bundle already reports
// an earlier one of its kind in it.
std::uint32_t entry_of_last(InHook, const FailedRequest& last) noexcept;

// The program ends of this probe: from now on it is the last failure.
void count_as_failure(InHook, FailedRequest& probe) noexcept;

// The failure did no harm. The next one of its kind may.
void resolve(FailedRequest&) noexcept;

// The program recovered from this kind. If the next one ends it, that one gets a bundle.
void resolve_kind(std::uint32_t entry) noexcept;

// Where the thread of this failure was. Not for after-shocks: what follows, follows from the first.
void keep_call(const FailedRequest&, const FailedCall&) noexcept;

// The latest such failure. False: there is none, or the lock is held.
bool last_call(FailedRequest&, FailedCall&) noexcept;

// The latest failure that was not a probe. time_ns is 0 if there is none, or the lock is held.
FailedRequest last_failure() noexcept;

// Whether that failure may still end the program.
bool has_failed_lately() noexcept;

// The newest failure of all threads, if it is later than number `since`: for an exception raised on
// another thread than the one that made the request. Each failure is claimed once, not after it led
// to an exception, and only while it may still end the program.
bool claim_newest(std::uint32_t since, FailedRequest& newest) noexcept;

// The failure led to an exception.
void mark_raised(const FailedRequest&) noexcept;

// Whether our own limit failed the request, not the system or a rule of --fail.
bool failed_by_own_limit(const FailedRequest&) noexcept;

void reset_failure_table_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
