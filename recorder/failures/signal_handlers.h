// Our own signal handlers, for a crash that may follow from a failure.
//
// They are installed after a request has failed, only where the program has no handler, and on a
// stack of our own: running over its own stack is one of the crashes to be recorded. A handler
// records the crash (crash.h) and then forwards the signal, so that the process ends as it would
// have without us: same signal, wait status and core. The program never sees a handler of ours,
// because the hooks of sigaction and its kin ask here. exec removes them. A fork's child inherits
// them; they only forward until it has a session.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"
#include "common/system/syscalls.h"

namespace oomrec::recorder {

using system::KernelAction;

// From start(): reserves the stacks. Unused ones do not count as the program's data (RLIMIT_DATA).
void prepare_handlers() noexcept;

// After a failure on the calling thread. Several system calls: not for every repeat.
void install_handlers(InHook) noexcept;

// Before a sandbox, where a handler of ours could do nothing.
void remove_handlers(InHook) noexcept;

// The program's own action, where the kernel has `handler`; null: that one is not ours.
const KernelAction* hidden_action(int signal, const void* handler) noexcept;

// Whether the alternate signal stack at `low` is one of ours.
bool is_handler_stack(const void* low) noexcept;

// The stacks belong to the parent's threads.
void reset_handlers_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
