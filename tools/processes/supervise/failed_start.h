// Recognizes a limit too low for a program to start, by the stack of its last failed request.
#pragma once

#include <string>
#include <vector>

#include "tools/bundles/store/source.h"
#include "tools/processes/launch/options.h"

namespace oomrec::tools::processes {

// The message, in one line, if the bundle's failure came before the program's main or, in Python,
// before its first line. Empty: the program had started. A program that survives such a failure may
// end later for another reason, so the message says only what was refused.
std::string failed_start_of(const bundles::Source& bundle, const Options& options);

// The same for a program without a recording: the address space was too small for the loader to map
// its libraries. Runs the loader again, up to main. Empty: it failed for another reason.
std::string failed_load_of(const std::string& path, const std::vector<std::string>& words,
                           const Settings& settings);

}  // namespace oomrec::tools::processes
