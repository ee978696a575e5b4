// How the runtimes of C++ and Rust end a program whose request failed.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/session/layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// The exceptions that the calling thread has thrown and not yet finished handling, by the C++ ABI
// (Itanium). Where nobody catches an exception, the runtime makes it such a one, too, before it
// ends the program.
struct ThrownException {
  bool is_bad_alloc = false;       // the latest is a std::bad_alloc, or of a derived type
  bool handled_bad_alloc = false;  // so is one that was being handled when the latest was thrown
  bool says_memory = false;        // the latest's text or error code says that memory was short
};

// `runtime`: where the ELF header of the C++ runtime is mapped, in which this thread has thrown
// before: its thread-local state then exists. `error`: what the failed call returned, which a
// std::system_error may have. `name`: receives the mangled name of the latest's type,
// NUL-terminated; empty: there is none. Reads memory through the kernel.
ThrownException thrown_exception(InHook, std::uint64_t runtime, int error,
                                 std::span<char> name) noexcept;

// Whether an error message is about memory that was refused.
bool is_about_memory(std::string_view message) noexcept;

// Rust often prints a backtrace first, which takes thousands of requests.
//
// Whether a function that only a failure leads to is on the crash's stack: handle_alloc_error() or
// one that it calls; or, if the caller of the failed call crashed in its next call (`at_once`), the
// one in which unwrap() and expect() end on an error. Cost: a pass over the program's symbol table
// for each frame outside of the C library; false if it has none (`strip`).
bool ended_for_failure_in_rust(InHook, const session::Crash&, bool at_once) noexcept;

}  // namespace oomrec::recorder
