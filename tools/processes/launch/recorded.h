// What makes a program a recorded one: its variables, or why it cannot be.
#pragma once

#include <string>

#include "tools/processes/launch/options.h"

namespace oomrec::tools::processes {

// Why the program at `path` cannot be recorded, to be read after its name; empty: it can.
std::string unsuitability(const std::string& path);

// LD_PRELOAD, OOMREC_* and PYTHONMALLOC, as the options want them.
Settings recording_settings(const RunOptions& options);

}  // namespace oomrec::tools::processes
