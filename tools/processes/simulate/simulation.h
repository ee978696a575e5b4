// Runs a process that dies of a kind, and finds its bundle.
#pragma once

#include <string>
#include <vector>

#include "tools/processes/simulate/kinds.h"

namespace oomrec::tools::processes {

// `child_words`: the command line that calls kind.act(), without the program. `dump_dir`: empty is
// the default. Returns the bundle's path; throws Error with nothing_found if no bundle has the
// verdict.
std::string simulate(const SimulatedKind& kind, const std::vector<std::string>& child_words,
                     const std::string& dump_dir);

}  // namespace oomrec::tools::processes
