// Runs this very command with the recorder in it: for commands that make memory run out.
#pragma once

#include <string>
#include <vector>

#include "tools/processes/launch/process.h"

namespace oomrec::tools::processes {

// `options`: flags of `oomrec run`; `words`: the command line, from the subcommand on; `further`:
// variables besides. Bundles are made and completed as `oomrec run` does. Afterwards
// dump_directories() are those where they went.
Ended run_self(const std::vector<std::string>& options, const std::vector<std::string>& words,
               const Settings& further = {});

}  // namespace oomrec::tools::processes
