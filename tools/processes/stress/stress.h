// Runs `oomrec stress` under a limit: starts a recorded child that allocates in steps.
#pragma once

#include <string>
#include <vector>

#include "tools/processes/stress/steps.h"

namespace oomrec::tools::processes {

// `limit`: a size, or empty for the limits already in force. `child_words`: the command line that
// calls allocate_in_steps(plan), without the program. Returns the exit code. Throws Error with
// bad_input if nothing limits the memory: the machine itself would run out.
int run_stress(const StressPlan& plan, const std::string& limit,
               const std::vector<std::string>& child_words);

}  // namespace oomrec::tools::processes
