// Signal handlers of our own, for the death that may follow from a failure.
//
// They are put in place after an allocation has failed, only where the program has none, and on a
// stack of their own: one of the thread's crashes that are worth telling is the end of its stack.
// A handler records the crash (crash.h) and hands on what would have happened without it: the same
// signal, wait status and core. The program never sees one: the hooks of sigaction and its kin ask
// here. exec takes them away; a fork's child has them, and they only hand on until it has a session
// of its own.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"
#include "common/system/signal_action.h"

namespace oomrec::recorder {

using system::KernelAction;

// From start(): reserves the stacks. Until one is needed it does not count as the program's data
// (RLIMIT_DATA).
void prepare_handlers() noexcept;

// After a failure on the calling thread. Several system calls: not for each repeat.
void install_handlers(InHook) noexcept;

// Before a sandbox, where a handler of ours could do nothing.
void remove_handlers(InHook) noexcept;

// What the program left where the kernel says `handler`; null: that is none of ours.
const KernelAction* hidden_action(int signal, const void* handler) noexcept;

// Whether a thread's alternate signal stack at `low` is one that it got from us.
bool is_handler_stack(const void* low) noexcept;

// After a fork: the stacks were given to the parent's threads.
void reset_handlers_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
