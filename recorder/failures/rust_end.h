// Rust aborts a program whose request failed in handle_alloc_error(), often after it has printed a
// backtrace, which takes thousands of requests. No other call leads there.
#pragma once

#include "common/session/layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// Whether that function or one that it calls is on the crash's stack. Cost: a pass over the
// program's symbol table for each frame outside of the C library; false if it has none (`strip`).
bool ended_in_rust_alloc_error(InHook, const session::Crash&) noexcept;

}  // namespace oomrec::recorder
