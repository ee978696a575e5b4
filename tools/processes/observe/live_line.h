// One line on the terminal that shows the latest sample. Prints nothing if stderr is not a
// terminal.
#pragma once

#include <string>

#include "tools/processes/observe/observed.h"

namespace oomrec::tools::processes {

class LiveLine {
 public:
  LiveLine();
  ~LiveLine() { clear(); }
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  // Prints at most ten times a second.
  void show(double elapsed_s, const MemorySample& sample);

  // Call it before printing anything else on the terminal.
  void clear();

 private:
  const bool is_terminal_;
  bool shown_ = false;
  double shown_at_s_ = -1;
};

}  // namespace oomrec::tools::processes
