// How the commands attach: with flags, else with the variables of `oomrec run`.
#pragma once

#include <sys/types.h>

#include "tools/processes/attach/session.h"
#include "tools/processes/launch/process.h"

namespace oomrec::tools::commands {

// `flags`: values that were given as flags, by the variable for which each stands. Throws Error.
processes::Attached attach_with_settings(pid_t pid, const processes::Settings& flags);

}  // namespace oomrec::tools::commands
