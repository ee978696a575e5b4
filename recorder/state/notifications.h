// Wakes threads in oomrec_wait(), by a futex in the session that counts notifications. Costs a
// system call only if a thread waits.
//
// A failure, a bundle, and memory that crosses a requested percentage (limits/thresholds.h) each
// increment it.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

void notify_waiters(InHook) noexcept;

// Returns the futex's value: at once if it is not `seen`, else once it has grown, after
// `timeout_ms`, or when a signal arrives. Sleeps, so no hook may call it.
std::uint32_t wait_for_notification(std::uint32_t seen, std::uint32_t timeout_ms) noexcept;

// The child has no waiting threads.
void reset_waiters_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
