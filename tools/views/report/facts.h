// The part of a report in words and few figures: what happened, the process and the machine.
#pragma once

#include "tools/base/json.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::views {

// The page's JSON, except for the members that refer to stacks.
Json report_facts(const bundles::Source& source);

}  // namespace oomrec::tools::views
