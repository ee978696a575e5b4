// Modules with an allocator of their own that hold a notable part of a recording.
#pragma once

#include <string>
#include <vector>

#include "tools/bundles/store/source.h"

namespace oomrec::tools::print {

// A sentence for each: what it is, how much it holds, and what to set to record its blocks. The
// largest first. Cost: reads the constants of the few modules that made the large mappings.
std::vector<std::string> linked_allocator_notes(const bundles::Source&);

}  // namespace oomrec::tools::print
