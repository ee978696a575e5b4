// The time line as JSON: docs/commands/timeline.md.
#pragma once

#include "tools/base/json.h"
#include "tools/recording/reading/timeline.h"

namespace oomrec::tools::views {

Json moment_json(const recording::Moment&, const recording::Recording&);
Json limits_json(const recording::Timeline&, const recording::Recording&);
Json timeline_json(const recording::Timeline&, const recording::Recording&);

}  // namespace oomrec::tools::views
