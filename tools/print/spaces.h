// The spaces of a recording: what lives in each, its peak, what was ever allocated.
#pragma once

#include <string>

#include "tools/base/json.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::print {

// A line for each that was ever used.
std::string spaces_text(const recording::Recording&);

Json spaces_json(const recording::Recording&);  // all of them, by name

}  // namespace oomrec::tools::print
