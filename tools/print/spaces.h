// The spaces of a recording: what lives in each, its peak, what was ever allocated.
#pragma once

#include <string>

#include "tools/analysis/recording.h"
#include "tools/json.h"

namespace oomrec::tools {

// A line for each that was ever used.
std::string spaces_text(const Recording&);

Json spaces_json(const Recording&);  // all of them, by name

}  // namespace oomrec::tools
