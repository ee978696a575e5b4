// Finds the interpreter and attaches to it: its version, the offsets of its fields, the functions
// that we call. Attaches to the first one found, and to no other.
//
// An interpreter that is loaded with the program is found by weak references, which the dynamic
// linker resolves before our constructor runs; one that is loaded later, or RTLD_LOCAL, by name in
// its module's symbol table. Either way, two self-tests decide whether we read it.
#pragma once

#include <cstdint>

#include "common/session/layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::stack {

// Finds the interpreter that was loaded with the program. From the constructor.
void python_start() noexcept;

// Whether the interpreter that was loaded with the program has no global lock, and so a heap of its
// own. Also if nothing is recorded.
bool is_free_threaded_python_linked() noexcept;

// Called when a module is recorded in the session: attaches to it if it is an interpreter and none
// is attached. `start`: where its ELF header is mapped.
void python_module_loaded(InHook, std::uint64_t start) noexcept;

// Called when modules were unloaded: detaches from an interpreter that was among them.
void python_modules_unloaded(InHook) noexcept;

// The interpreter turned out not to be what we took it for: it is not read any more, and the
// session says why. `problem`: static text.
void python_reject(InHook, const char* problem) noexcept;

// Which of the interpreter's objects are recorded, if they come from its pool. The session says so.
void record_pool_objects(InHook, session::PoolObjects) noexcept;

// Called once an interpreter is attached to. The shim sets it.
using OnPython = void(InHook);
inline constinit OnPython* g_on_python = nullptr;

// In the child of a fork: code ids belong to the parent's session.
void python_reset_after_fork(InHook) noexcept;

// Records the interpreter in the session's header, once a session.
void python_describe(InHook) noexcept;

}  // namespace oomrec::stack
