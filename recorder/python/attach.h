// Finds the interpreter and attaches to it: which version, where its fields are, which of its
// functions to call. The first one found stays the one that is read.
//
// An interpreter of the program's start set is found by weak references, which the dynamic linker
// has resolved before our constructor runs. One that is loaded later, or in a scope of its own, is
// found by name in its module's symbol table. Either way two self tests decide whether it is used.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::stack {

// Finds the interpreter that the program was started with; from the constructor.
void python_start() noexcept;

// A module was entered in the session: when it is an interpreter (loaded later, or RTLD_LOCAL) and
// none is attached, attaches to it. `start`: where its ELF header is mapped.
void python_module_seen(InHook, std::uint64_t start) noexcept;

// Modules were unloaded: lets go of an interpreter that was among them.
void python_forget_modules(InHook) noexcept;

// The session's tables are no longer ours (child of a fork): code ids are void.
void python_forget_session(InHook) noexcept;

// Says in the session's header which interpreter runs, once a session.
void python_describe(InHook) noexcept;

}  // namespace oomrec::stack
