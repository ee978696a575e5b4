// One line on the user's terminal that follows what is looked at; nothing where stderr is none.
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

  // At most ten times a second.
  void show(double elapsed_s, const Look& look);

  // Before another line is printed on the terminal.
  void clear();

 private:
  const bool wanted_;
  bool shown_ = false;
  double shown_at_s_ = -1;
};

}  // namespace oomrec::tools::processes
