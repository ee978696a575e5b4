// A report's figures over time: the time line, the largest holders at each checkpoint, failures and
// marks.
#pragma once

#include "tools/base/json.h"
#include "tools/bundles/store/source.h"
#include "tools/views/report/container.h"
#include "tools/views/report/rows.h"

namespace oomrec::tools::views {

// Adds the arrays to `container`, and the members limits, marks and refusals to `json`.
void add_over_time(const recording::Recording& recording, NamedStacks& stacks,
                   const ReportRows& rows, Container& container, Json& json);

// For a job, adds what each rank held at each moment of the job, such as "t_rank_3".
void add_ranks_over_time(const bundles::Source& source, Container& container);

}  // namespace oomrec::tools::views
