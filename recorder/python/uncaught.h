// The exception that nobody caught, when it ends the interpreter.
//
// Python sets sys.last_type when it prints an uncaught exception, whatever sys.excepthook is. Its
// end then resets SIGINT, as its first step that we see: modules and objects are still there.
#pragma once

#include <string_view>

namespace oomrec::stack {

struct Uncaught {
  std::string_view type;      // empty: none
  bool is_of_worker = false;  // it came from another process, with the traceback as its cause
};

// The exception printed last, if that is a MemoryError or derived from it. Calls the interpreter,
// which may allocate: only outside of a hook's scope. None, without a call, unless this is the main
// thread and runs Python code.
Uncaught uncaught_memory_error() noexcept;

}  // namespace oomrec::stack
