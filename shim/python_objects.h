// Observes Python's small objects: puts our functions into the interpreter's table of allocators
// (PyMem_SetAllocator), in front of those that are there.
#pragma once

namespace oomrec::shim {

// Called once, when the recorder has started. Covers an interpreter that is
// loaded later, too.
void start_python_objects() noexcept;

// Takes them out again, for a program that is detached from.
void stop_python_objects() noexcept;

}  // namespace oomrec::shim
