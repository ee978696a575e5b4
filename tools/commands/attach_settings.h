// How the commands attach: with flags, else with the variables of `oomrec run`.
#pragma once

#include <sys/types.h>

#include <string>

#include "tools/processes/attach/session.h"

namespace oomrec::tools::commands {

// An empty text: the variable, else the default. Throws Error.
processes::Attached attach_with_settings(pid_t pid, const std::string& mode,
                                         const std::string& limit, const std::string& directory);

}  // namespace oomrec::tools::commands
