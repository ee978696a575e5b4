// What the process itself reported before its end: its fatal signal, and the exception that the
// program raised.
#pragma once

#include <string>

#include "tools/base/json.h"
#include "tools/base/terminal.h"
#include "tools/bundles/store/source.h"
#include "tools/recording/stack_text/stack_text.h"

namespace oomrec::tools::sections {

// "SIGSEGV at address 0x10 in thread 4711 "python3"", then the stack. Empty without a crash.
std::string crash_text(const bundles::Source&, const recording::StackStyle& style);

// null without a crash.
Json crash_json(const bundles::Source&);

// The exception that the program raised after a failed allocation, and the program's own metadata.
// Both are in the bundle's metadata.json, where oomrec_exception() wrote them (include/oomrec.h).

// Lines for a terminal. `full`: with the whole traceback and all custom metadata. Empty without
// either.
std::string exception_text(const bundles::Source&, bool full, const Terminal&);

// {type, module, message, traceback}, or null.
Json exception_json(const bundles::Source&);

// The program's custom metadata: an object, possibly empty.
Json custom_metadata_json(const bundles::Source&);

}  // namespace oomrec::tools::sections
