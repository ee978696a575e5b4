// The statistics of a recording: totals, sizes, allocator functions and the functions that
// allocated most, as a page and as JSON (docs/commands/stats.md).
#pragma once

#include <cstddef>

#include "tools/base/json.h"
#include "tools/base/terminal.h"
#include "tools/bundles/store/source.h"
#include "tools/recording/analysis/statistics.h"

namespace oomrec::tools::views {

// `top`: how many functions.
void print_stats_page(const recording::Statistics& statistics, const bundles::Source& source,
                      std::size_t top, const Terminal& terminal);

Json stats_json(const recording::Statistics& statistics, const bundles::Source& source,
                std::size_t top);

}  // namespace oomrec::tools::views
