// The ranks of a job as text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/base/terminal.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::sections {

// Rows of name and value, like those of process_facts(): job, hosts, clock, missing ranks.
std::vector<std::pair<std::string, std::string>> job_facts(const bundles::Source& source);

// A line for each rank; the first that failed is marked. `ranks`: a job's ranks.json. Of more than
// 64 ranks, only 64 are shown, those that failed first, unless `full`.
std::string ranks_text(const Json& ranks, const Terminal& terminal, bool full);

}  // namespace oomrec::tools::sections
