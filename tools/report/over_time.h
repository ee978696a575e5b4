// A report's figures over time: the time line, the largest holders at each checkpoint, and what
// happened when.
#pragma once

#include "tools/json.h"
#include "tools/report/container.h"
#include "tools/report/rows.h"

namespace oomrec::tools {

// Adds the arrays of both, and to `json` the members limits, marks and refusals.
void add_over_time(const Recording& recording, NamedStacks& stacks, const ReportRows& rows,
                   Container& container, Json& json);

}  // namespace oomrec::tools
