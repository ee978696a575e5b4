// Pictures of an analysis. Python draws them, as PNG if matplotlib is installed.
#pragma once

#include <string>
#include <vector>

#include "tools/base/json.h"

namespace oomrec::tools::views {

struct DrawResult {
  std::vector<std::string> files;  // absolute paths
  std::string missing;             // what was not drawn, and what to install; empty: nothing
};

// `data`: Analysis::drawing(). Creates `directory`. Throws Error if nothing could be drawn, for
// example without Python.
DrawResult draw(const Json& data, const std::string& directory);

}  // namespace oomrec::tools::views
