// `oomrec run --jit-names`: what runtimes need to tell the names of code that they make.
#pragma once

#include "tools/processes/launch/process.h"

namespace oomrec::tools::processes {

// Variables for the program, with what the environment has in them already.
Settings jit_name_settings();

}  // namespace oomrec::tools::processes
