// Failed requests: recorded with their evidence (failure_table.h), reported in a bundle when one is
// due (bundle_scheduler.h).
//
// A program may fail a million times a second and go on. So a repeat without a bundle due costs a
// stack walk and a few stores; evidence is read at most ten times a second.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"
#include "recorder/state/failed_request.h"
#include "recorder/state/request.h"

namespace oomrec::recorder {

// Records that `request` failed with `error`: an errno, or the driver's code for a GPU's request.
// May write a bundle and report on stderr. Returns within the bundle's time bound.
void on_failure(InHook, const Request&, int error, FailedBy) noexcept;

// The number of this thread's latest failure; 0: none yet.
std::uint32_t last_failure_number(InHook) noexcept;
// The number of failures on all threads.
std::uint32_t failure_count(InHook) noexcept;

// The process ends with `status`, or is replaced. Writes the last failure's bundle, if it has none.
void report_last_failure(InHook, int status) noexcept;

// Writes a bundle as a warning, `near_limit` or `pressure`. False: none is due, or none could be
// written.
bool warn(InHook, Trigger) noexcept;

// A GPU's request was served. If this thread has made a failed one again, that failure did no harm,
// and its bundle says so. Takes nanoseconds, unless a failure is unresolved.
void resolve_served_device(InHook, Api, std::uint64_t bytes) noexcept;
// PyTorch has a block on the device: this thread's pending failure did no harm, and is reported
// so.
void on_torch_served(InHook, std::uint32_t device) noexcept;
// PyTorch gives up: reports this thread's pending failure on the device, with the device's
// figures as they are now. False: there is none.
bool confirm_failure(InHook, std::uint32_t device) noexcept;

// The process is about to die of the crash in the session's header, which follows from this
// failure: completes its bundle, or writes one. Returns within three times the bundle's time bound:
// where a disk hangs, the session is what is left.
void report_crash(InHook, const FailedRequest&) noexcept;
// The same for a crash that no failure of ours led to, but a limit of the program's runtime.
void report_crash_alone(InHook) noexcept;

// Whether the last failure on record has a bundle. That bundle's recording has the earlier ones, so
// the session is not needed any more.
bool last_failure_reported() noexcept;

void reset_failures_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
