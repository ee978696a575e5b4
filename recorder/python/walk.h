// Walks the calling thread's Python frames.
//
// The chain of one's own thread is stable, with or without the GIL: only this thread pushes and
// pops. Most of it is what it was at the thread's last event. So the walk goes outwards until it
// comes to the address of a remembered link; where that one and *every* link further out are what
// they were (held_links.h), that part is taken over as it stands. A frame's address alone says
// nothing: its memory is reused with other callers.
#pragma once

#include "common/system/hook_scope.h"
#include "recorder/python/memo.h"

namespace oomrec::stack {

// This thread's Python frames; none where there is no interpreter, none attached, or it
// is going down. `in_handler`: a signal may have interrupted the interpreter at any instruction (a
// native frame is exact, or the native walk was cut).
PythonStack python_stack(InHook, PythonMemo&, bool in_handler = false) noexcept;

// What is remembered holds no longer: another thread, other numbers in the session. Returns an
// empty stack.
PythonStack forget_python(PythonMemo&) noexcept;

}  // namespace oomrec::stack
