// A process that shares our memory, on a stack of its own.
#pragma once

namespace oomrec::helper {

// clone(2) with these flags; the new process calls run(argument) and exits with 0. `pid`: what
// CLONE_PARENT_SETTID speaks of; `word`: what CLONE_CHILD_SETTID and CLONE_CHILD_CLEARTID do. Its
// pid, or minus an errno.
long clone_onto(void* stack_top, unsigned long flags, const void* pid, const void* word,
                void (*run)(void*) noexcept, void* argument) noexcept;

}  // namespace oomrec::helper
