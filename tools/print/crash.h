// The signal that ended a process, as its own handler saw it: for people and as JSON.
#pragma once

#include <cstddef>
#include <string>

#include "tools/bundles/source.h"
#include "tools/json.h"
#include "tools/print/stack.h"

namespace oomrec::tools {

// "SIGSEGV at address 0x10 in thread 4711 "python3"", and the stack below. Empty: there was none.
std::string crash_text(const Source&, const StackStyle& style);

// null: there was none.
Json crash_json(const Source&);

}  // namespace oomrec::tools
