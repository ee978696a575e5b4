// The exception that the program raised after a failed allocation, and the program's own metadata.
// Both are in the bundle's metadata.json, where oomrec_exception() wrote them (include/oomrec.h).
#pragma once

#include <string>

#include "tools/base/terminal.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::print {

// Lines for a terminal. `full`: with the whole traceback and all custom metadata. Empty without
// either.
std::string exception_text(const bundles::Source&, bool full, const Terminal&);

// {type, module, message, traceback}, or null.
Json exception_json(const bundles::Source&);

// The program's custom metadata: an object, possibly empty.
Json custom_metadata_json(const bundles::Source&);

}  // namespace oomrec::tools::print
