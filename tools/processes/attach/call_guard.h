// One call into a process at a time.
//
// Another command may be at work there, or may have been killed during its call, which then goes on
// by itself: the thread still runs the code that the command has written into the process.
#pragma once

#include <sys/types.h>

#include "tools/base/descriptor.h"

namespace oomrec::tools::processes {

class CallGuard {
 public:
  // Waits for a call that goes on by itself. Throws Error: another command is at work, or the call
  // does not end.
  explicit CallGuard(pid_t pid);

 private:
  Descriptor socket_;  // bound to a name that the kernel gives away once
};

}  // namespace oomrec::tools::processes
