// The live view as JSON: docs/commands/top.md.
#pragma once

#include "tools/json.h"
#include "tools/top/layout.h"

namespace oomrec::tools {

Json top_json(const Scene&);

}  // namespace oomrec::tools
