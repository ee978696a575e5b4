// Finds the running process that a command's argument names, or the bundle of one that has ended.
#pragma once

#include <string>

#include "tools/recording/live/processes.h"

namespace oomrec::tools::bundles {

// As recording::find_live_process(), with the errors of require_not_ended().
recording::LiveProcess find_live_process(const std::string& argument);

// If `argument` is the pid of a process that has ended, and the dump directories have a bundle of
// it, throws Error that names the newest one. It is not opened: another process may have had that
// pid before. Recovers the orphans of these directories first.
void require_not_ended(const std::string& argument);

}  // namespace oomrec::tools::bundles
