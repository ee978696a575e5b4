// The time line as JSON: docs/commands/timeline.md.
#pragma once

#include "tools/analysis/timeline.h"
#include "tools/json.h"

namespace oomrec::tools {

Json moment_json(const Moment&, const Recording&);
Json limits_json(const Timeline&, const Recording&);
Json timeline_json(const Timeline&, const Recording&);

}  // namespace oomrec::tools
