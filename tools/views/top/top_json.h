// The live view as JSON: docs/commands/top.md.
#pragma once

#include "tools/base/json.h"
#include "tools/views/top/layout.h"

namespace oomrec::tools::views {

Json top_json(const Scene&);

}  // namespace oomrec::tools::views
