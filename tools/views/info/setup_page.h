// A setup as a page and as JSON (docs/commands/info.md).
#pragma once

#include "tools/base/json.h"
#include "tools/base/terminal.h"
#include "tools/views/info/setup.h"

namespace oomrec::tools::views {

void print_setup(const Setup& setup, Detail detail, const Terminal& terminal);
Json setup_json(const Setup& setup);

}  // namespace oomrec::tools::views
