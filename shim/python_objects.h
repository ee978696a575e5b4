// Observes Python's small objects: puts our functions into the interpreter's table of allocators
// (PyMem_SetAllocator), in front of those that are there.
#pragma once

namespace oomrec::shim {

struct PythonObjects {
  bool sampled;           // --python-sampling
  bool every;             // --python-objects, which also has PYTHONMALLOC=malloc in the environment
  bool attaches = false;  // to an interpreter that runs, and that other tools may have changed
};

// Called once, when the recorder has started. Covers an interpreter that is
// loaded later, too.
void start_python_objects(PythonObjects) noexcept;

// A free-threaded interpreter does not start with the PYTHONMALLOC=malloc that `oomrec run
// --python-objects` puts into the environment. Empties it.
void drop_choice_of_malloc() noexcept;

// Takes them out again, for a program that is detached from.
void stop_python_objects() noexcept;

}  // namespace oomrec::shim
