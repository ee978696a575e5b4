// The exception that a program made of a refusal, and what it said of itself: from the bundle's
// metadata, where oomrec_exception() put them (include/oomrec.h).
#pragma once

#include <string>

#include "tools/base/terminal.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::print {

// Lines for a terminal; `full`: with the whole traceback. Empty where there is none.
std::string exception_text(const bundles::Source&, bool full, const Terminal&);

// {type, module, message, traceback}, or null.
Json exception_json(const bundles::Source&);

// custom_metadata: an object, empty where the program said nothing.
Json custom_metadata_json(const bundles::Source&);

}  // namespace oomrec::tools::print
