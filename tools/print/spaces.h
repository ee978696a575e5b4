// The spaces of a recording: live bytes, peak and allocated bytes of each.
#pragma once

#include <string>

#include "tools/base/json.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::print {

// A line for each space that was used.
std::string spaces_text(const recording::Recording&);

Json spaces_json(const recording::Recording&);  // all of them, by name

}  // namespace oomrec::tools::print
