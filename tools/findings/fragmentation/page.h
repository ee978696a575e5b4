// Fragmentation as text and as JSON (docs/commands/fragmentation.md).
#pragma once

#include "tools/base/json.h"
#include "tools/base/terminal.h"
#include "tools/findings/fragmentation/figures.h"

namespace oomrec::tools::findings {

Json fragmentation_json(const Fragmentation& figures, const bundles::Source& source);
void print_fragmentation(const Fragmentation& figures, const bundles::Source& source,
                         const Terminal& terminal);

}  // namespace oomrec::tools::findings
