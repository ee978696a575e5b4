// Functions of the process hooks for the constructor.
#pragma once

#include "common/machine/instructions.h"

namespace oomrec::shim {

// Observes the end of the program's exit handlers. Called by the constructor, or at each
// `oomrec attach`.
void start_exit() noexcept;

// Looks up the function that reads a new thread's stack size: it is in libpthread before
// glibc 2.34. Called once, by the constructor.
void find_stack_size_of() noexcept;

// False in a clone child that the program gave thread-local storage of its own, empty (a sandbox's
// helper, CLONE_VM | CLONE_SETTLS): neither errno nor our variables exist there.
using machine::has_thread_storage;

// Sets whether children are recorded too, and the file name of this library. Called once, by the
// constructor.
void start_exec(bool children, const char* library_path) noexcept;

// For `oomrec attach`: variables that the programs get which this process starts, if children are
// recorded: LD_PRELOAD, and those of the recorder; null at the end of the list. Null: none.
void add_to_environments(const char* const* variables) noexcept;

// These variables, if the program at `path` gets them; else null.
const char* const* variables_for_child(const char* path) noexcept;

}  // namespace oomrec::shim
