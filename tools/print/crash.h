// The fatal signal of a process, as the recorder's handler recorded it: as text and as JSON.
#pragma once

#include <cstddef>
#include <string>

#include "tools/base/json.h"
#include "tools/bundles/store/source.h"
#include "tools/recording/stack_text/stack_text.h"

namespace oomrec::tools::print {

// "SIGSEGV at address 0x10 in thread 4711 "python3"", then the stack. Empty without a crash.
std::string crash_text(const bundles::Source&, const recording::StackStyle& style);

// null without a crash.
Json crash_json(const bundles::Source&);

}  // namespace oomrec::tools::print
