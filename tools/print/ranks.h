// The ranks of a job, as people read them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/base/terminal.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::print {

// Rows of name and value, as process_facts() has them of a process: job, hosts, clock, who is
// missing.
std::vector<std::pair<std::string, std::string>> job_facts(const bundles::Source& source);

// A line for each rank, the first in trouble marked. `ranks`: a job's ranks.json. `full`: however
// many they are; else those in trouble come first.
std::string ranks_text(const Json& ranks, const Terminal& terminal, bool full);

}  // namespace oomrec::tools::print
