// The failures on record: each kind with its evidence, an entry of the session's `failures`, and
// the latest of all, in case the process ends with it.
//
// Stack, API and space make a kind. A repeat is only counted.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"
#include "recorder/failures/evidence.h"
#include "recorder/state/failed_request.h"

namespace oomrec::recorder {

// Records the failure: its entry, also in FailedRequest::entry (0: no room), and whether it is the
// first of its kind. A flood of new stacks shares evidence, unless `evidence` is fresh.
struct RecordedFailure {
  std::uint32_t entry = 0;
  bool first = false;
};
RecordedFailure record_failure(InHook, FailedRequest&, EvidenceFrom) noexcept;

// Gives an entry to a failure that has none, if there is room.
void ensure_entry(InHook, FailedRequest&) noexcept;

// Gives another entry to a failure whose kind was reported as harmless: this one is not. Repeats
// count there from now on.
void add_new_entry(InHook, FailedRequest&) noexcept;

// The entry for the bundle of the process' last failure: its own, unless a bundle already reports
// an earlier one of its kind in it.
std::uint32_t entry_of_last(InHook, const FailedRequest& last) noexcept;

// The failure did no harm. The next one of its kind may.
void settle(FailedRequest&) noexcept;

// The latest failure that was no probe. time_ns is 0 where there is none, or the lock is taken.
FailedRequest last_failure() noexcept;

// The newest failure of all threads, if it is later than number `since`: for an exception raised on
// another thread than the one whose request failed. Each is given out once, not after an exception
// came of it, and only while it may be what ends the program.
bool claim_newest(std::uint32_t since, FailedRequest& newest) noexcept;

// An exception came of it.
void mark_raised(const FailedRequest&) noexcept;

// Our limit made it fail, not the system and not a rule of --fail.
bool failed_by_own_limit(const FailedRequest&) noexcept;

void reset_failure_table_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
