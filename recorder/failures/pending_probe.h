// A probe: a request that a program can do without, as it has a fallback. Huge pages, an address
// hint, locked memory. Harmless if the program goes on, a failure like any other if it ends at
// once with nothing in its place.
//
// What was served since decides: the same thread's allocations and mappings, reservations included.
// An error message or a traceback allocates, too, but less than a substitute would.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"
#include "recorder/state/failed_request.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

// So much, served later, is a substitute for a request of `bytes`.
std::uint64_t substitute_bytes(std::uint64_t bytes) noexcept;

// The latest probe, made by `thread`.
void store_probe(InHook, const FailedRequest&, const ThreadState& thread) noexcept;

// The process exits with an error. If it ends of a probe, that becomes its last failure.
void promote_pending_probe(InHook) noexcept;
// A signal ends it. If that is because of its own probe, that becomes the thread's failure.
void promote_pending_probe(InHook, ThreadState&) noexcept;

void reset_pending_probe_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
