// What a report says in words and in few figures: what happened, to whom, on what machine.
#pragma once

#include "tools/base/json.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::views {

// Members of the page's JSON, but for what is made of stacks.
Json report_facts(const bundles::Source& source);

}  // namespace oomrec::tools::views
