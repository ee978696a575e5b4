// Opens the bundles of the other processes in a bundle's process tree: workers, ranks.
#pragma once

#include <cstddef>
#include <functional>

#include "tools/base/json.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

inline constexpr std::size_t kMostProcesses = 64;

// Calls visit(index, source) for each of `processes` (a list in the bundle's JSON) that has a
// bundle in the same directory. Skips the source's own, deleted and damaged bundles, and all
// processes after the first kMostProcesses.
void for_each_other_process(const Source& source, const Json& processes,
                            const std::function<void(std::size_t, const Source&)>& visit);

}  // namespace oomrec::tools::bundles
