// `oomrec run --live`: the live view, with the program's output below it.
//
// The program gets a pseudo-terminal; those of stdin, stdout and stderr that are no terminal stay
// unchanged. Keys go to the view until the user switches them to the program. The view runs in a
// thread beside the one that waits for the program. If the view fails, the program continues. At
// the end, all its output is printed unchanged.
#pragma once

#include <sys/types.h>

#include <memory>

namespace oomrec::tools::views {

class LiveRun {
 public:
  LiveRun();  // throws if the pseudo-terminal or the thread cannot be created
  // After the program's end: ends the view, restores the terminal and prints the output.
  ~LiveRun();
  LiveRun(const LiveRun&) = delete;
  LiveRun& operator=(const LiveRun&) = delete;

  // In the child, before exec: attaches it to the pseudo-terminal. False with errno.
  bool attach_child() const;
  // Begins the view.
  void started(pid_t program);

 private:
  class View;
  std::unique_ptr<View> view_;
};

}  // namespace oomrec::tools::views
