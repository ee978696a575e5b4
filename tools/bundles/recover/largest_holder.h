// The largest holder of a process, in words for one line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

struct LargestHolder {
  std::uint64_t bytes = 0;
  bool estimated = false;
  std::string where;  // "train.py:42 make_batch": the most informative line of its stack
};

// A line of Python counts with all that was called in it, in all spaces, as in `oomrec show`.
// Leaves out inherited memory: the parent holds it, too. Symbolizes the recording's stacks, so it
// takes as long as `oomrec show`. Empty if nothing is held.
std::optional<LargestHolder> largest_holder_of(const Source&);

}  // namespace oomrec::tools::bundles
