// Whether a recording has memory from before the process was forked, or attached to.
#pragma once

#include "common/session/view.h"

namespace oomrec::tools::recording {

struct OldMemory {
  bool inherited = false;  // from before the fork
  // From before `oomrec attach`: any, and of these spaces.
  bool preexisting = false, heap = false, mappings = false, devices = false;
};

// Reads the table itself: there may be a million holders, and figures of each would cost too much.
OldMemory old_memory_of(const session::View& view);

}  // namespace oomrec::tools::recording
