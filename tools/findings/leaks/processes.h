// The leaks of a bundle's process and of its other processes: ranks, workers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/bundles/store/source.h"
#include "tools/findings/leaks/detect.h"

namespace oomrec::tools::findings {

struct ProcessLeaks {
  std::uint64_t pid = 0;
  std::string rank;     // "all" for a merged job; empty: not in a job
  std::string program;  // printable
  std::string bundle;   // name of its bundle; empty: a recording without one
  Leaks leaks;
};

// The source's own process first, with the leaks `own`. Then the others by leaked bytes: the ranks
// of a job, or the processes whose bundles are beside this one.
std::vector<ProcessLeaks> process_leaks(const bundles::Source& source, const Leaks& own);

}  // namespace oomrec::tools::findings
