// A limit under which a program never began: known from where its last refusal happened.
#pragma once

#include <string>
#include <vector>

#include "tools/bundles/store/source.h"
#include "tools/processes/launch/options.h"

namespace oomrec::tools::processes {

// What to tell, in one line, when the refusal of this bundle happened before the program's main (of
// a Python: before its first line) was reached; empty: it had begun.
std::string never_began(const bundles::Source& bundle, const Options& options);

// The same for a program that left nothing: an address space so small that the loader could not map
// the program's libraries. Asks the loader again, up to main. Empty: that is not it.
std::string never_loaded(const std::string& path, const std::vector<std::string>& words,
                         const Settings& settings);

}  // namespace oomrec::tools::processes
