// Refusals: recorded with all their evidence (known_refusals.h), told in a bundle when it is their
// turn (telling.h).
//
// A program may be refused a million times a second and go on: a known stack with no bundle due
// costs a stack walk and a few stores; evidence is read anew at most ten times a second.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"
#include "recorder/state/failed_request.h"
#include "recorder/state/request.h"

namespace oomrec::recorder {

// Records that `request` was refused with `error` (an errno; of a GPU's request, its driver's
// code); `by_us`: admits() or admits_on_device() did. May write a
// bundle and report on stderr; returns within the bundle's time bound.
void on_failure(InHook, const Request&, int error, bool by_us) noexcept;

// The number of this thread's latest refusal; 0: none yet. And of all threads'.
std::uint32_t last_failure(InHook) noexcept;
std::uint32_t failures(InHook) noexcept;

// The process ends with `status`, or is replaced: the last refusal gets its bundle, if it is in
// none.
void tell_last_failure(InHook, int status) noexcept;

// A bundle that tells what may come, `near_limit` or `pressure`. False: none is due now, or none
// could be written.
bool warn(InHook, Trigger) noexcept;

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
