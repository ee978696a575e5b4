// A report's figures over time: the time line, the largest holders at each checkpoint, and what
// happened when.
#pragma once

#include "tools/base/json.h"
#include "tools/bundles/store/source.h"
#include "tools/views/report/container.h"
#include "tools/views/report/rows.h"

namespace oomrec::tools::views {

// Adds the arrays of both, and to `json` the members limits, marks and refusals.
void add_over_time(const recording::Recording& recording, NamedStacks& stacks,
                   const ReportRows& rows, Container& container, Json& json);

// Of a job, what each rank held at each moment of the whole: "t_rank_3" is that of rank 3.
void add_ranks_over_time(const bundles::Source& source, Container& container);

}  // namespace oomrec::tools::views
