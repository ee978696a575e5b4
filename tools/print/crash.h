// The signal that ended a process, as its own handler saw it: for people and as JSON.
#pragma once

#include <cstddef>
#include <string>

#include "tools/base/json.h"
#include "tools/bundles/store/source.h"
#include "tools/recording/stack_text/stack_text.h"

namespace oomrec::tools::print {

// "SIGSEGV at address 0x10 in thread 4711 "python3"", and the stack below. Empty: there was none.
std::string crash_text(const bundles::Source&, const recording::StackStyle& style);

// null: there was none.
Json crash_json(const bundles::Source&);

}  // namespace oomrec::tools::print
