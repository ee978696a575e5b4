// The recordings of the processes that were started with a bundle's own: workers, ranks.
#pragma once

#include <cstddef>
#include <functional>

#include "tools/base/json.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

inline constexpr std::size_t kMostProcesses = 64;

// visit(number, source) for each of `processes` (company_of()) but the source's own that has a
// bundle beside the source's: `number` is its place there. Those that are gone or damaged are left
// out, and so is what comes after the first kMostProcesses.
void for_each_other_process(const Source& source, const Json& processes,
                            const std::function<void(std::size_t, const Source&)>& visit);

}  // namespace oomrec::tools::bundles
