// What a report says in words and in few figures: what happened, to whom, on what machine.
#pragma once

#include "tools/bundles/source.h"
#include "tools/json.h"

namespace oomrec::tools {

// Members of the page's JSON, but for what is made of stacks.
Json report_facts(const Source& source);

}  // namespace oomrec::tools
