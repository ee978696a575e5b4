// Walks the calling thread's Python frames.
//
// A thread's own chain is stable, with or without the GIL: only this thread pushes and pops. Most
// of it is unchanged since the thread's last event. So walk outwards to the address of a cached
// link; if that link and *every* link further out are unchanged (unchanged_links.h), reuse that
// part. A frame's address alone proves nothing: its memory is reused for other callers.
#pragma once

#include "common/system/hook_scope.h"
#include "recorder/python/chain_cache.h"

namespace oomrec::stack {

// This thread's Python frames; none without an interpreter, or while it ends. `in_handler`: a
// signal may have interrupted the interpreter at any instruction (a native frame is exact, or the
// native walk was truncated).
PythonStack python_stack(InHook, PythonCache&, bool in_handler = false) noexcept;

// Discards the cached walk: another thread, or other ids in the session. Returns an empty stack.
PythonStack clear_python_cache(PythonCache&) noexcept;

}  // namespace oomrec::stack
