// The leaks of a bundle's process and of those that were started with it: ranks, workers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/bundles/store/source.h"
#include "tools/findings/leaks/detect.h"

namespace oomrec::tools::findings {

struct ProcessLeaks {
  std::uint64_t pid = 0;
  std::string rank;     // in its job, "all" of a merged one; empty: it is of none
  std::string program;  // printable
  std::string bundle;   // name of its bundle; empty: a recording without one
  Leaks leaks;
};

// The source's own first, with `own`, what was found in it; then of the others the recordings that
// are in bundles beside this one, or of a job its ranks', the one that leaks most first.
std::vector<ProcessLeaks> process_leaks(const bundles::Source& source, const Leaks& own);

}  // namespace oomrec::tools::findings
