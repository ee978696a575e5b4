// Wakes those who wait (oomrec_wait) for something to happen: a word of the session that grows, and
// is a futex. Waking costs a system call only where somebody waits.
//
// It grows with a failure, a bundle, and when memory passes a percentage that was asked for
// (limits/thresholds.h).
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

void notify_waiters(InHook) noexcept;

// The word, at once where it is not `seen`; else when it has grown, after `timeout_ms`, or when a
// signal came. The one call here that sleeps: no hook makes it.
std::uint32_t wait_for_notification(std::uint32_t seen, std::uint32_t timeout_ms) noexcept;

// After a fork: nobody waits in the child.
void reset_waiters_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
