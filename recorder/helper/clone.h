// Starts a process that shares our memory, on its own stack.
#pragma once

namespace oomrec::helper {

// clone(2) with these flags; the new process calls run(argument) and exits with 0. `pid`: for
// CLONE_PARENT_SETTID; `word`: for CLONE_CHILD_SETTID and CLONE_CHILD_CLEARTID. Returns the pid, or
// minus an errno.
long clone_onto(void* stack_top, unsigned long flags, const void* pid, const void* word,
                void (*run)(void*) noexcept, void* argument) noexcept;

}  // namespace oomrec::helper
