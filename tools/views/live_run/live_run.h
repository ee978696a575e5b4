// `oomrec run --live`: the live view above, what the program prints below.
//
// The program has a pseudo-terminal of its own; whatever of its stdin, stdout and stderr is no
// terminal stays what it is. Keys go to the view until they are given to the program. The view runs
// in a thread beside the one that waits for the program; whatever becomes of it, the program goes
// on, and all that it printed is printed at the end, as it was.
#pragma once

#include <sys/types.h>

#include <memory>

namespace oomrec::tools::views {

class LiveRun {
 public:
  LiveRun();   // throws where no terminal or no thread can be made
  ~LiveRun();  // the program has ended: so does the view; the terminal is as before, with the
               // output
  LiveRun(const LiveRun&) = delete;
  LiveRun& operator=(const LiveRun&) = delete;

  bool in_child() const;        // before exec; false with errno
  void started(pid_t program);  // the view begins

 private:
  class View;
  std::unique_ptr<View> view_;
};

}  // namespace oomrec::tools::views
