// Wakes those who wait for something to happen (oomrec_wait), by a futex in the session whose value
// grows. Costs a system call only where somebody waits.
//
// It grows with a failure, a bundle, and when memory crosses a percentage that somebody asked for
// (limits/thresholds.h).
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

void notify_waiters(InHook) noexcept;

// The value: at once if it is not `seen`, else when it has grown, after `timeout_ms`, or when a
// signal came. Sleeps, so no hook may call it.
std::uint32_t wait_for_notification(std::uint32_t seen, std::uint32_t timeout_ms) noexcept;

// Nobody waits in the child.
void reset_waiters_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
