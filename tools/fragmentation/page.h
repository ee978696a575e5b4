// Fragmentation as people read it and as JSON (docs/commands/fragmentation.md).
#pragma once

#include <string>

#include "tools/fragmentation/figures.h"
#include "tools/json.h"
#include "tools/terminal.h"

namespace oomrec::tools {

Json fragmentation_json(const Fragmentation& figures, const Source& source);
void print_fragmentation(const Fragmentation& figures, const Source& source,
                         const Terminal& terminal);

}  // namespace oomrec::tools
