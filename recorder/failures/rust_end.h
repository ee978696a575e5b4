// How Rust ends a program whose request failed, often after it has printed a backtrace, which takes
// thousands of requests.
#pragma once

#include "common/session/layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// Whether a function that only a failure leads to is on the crash's stack: handle_alloc_error() or
// one that it calls; or, if the caller of the failed call crashed in its next call (`at_once`), the
// one in which unwrap() and expect() end on an error. Cost: a pass over the program's symbol table
// for each frame outside of the C library; false if it has none (`strip`).
bool ended_for_failure_in_rust(InHook, const session::Crash&, bool at_once) noexcept;

}  // namespace oomrec::recorder
