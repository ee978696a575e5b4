// Pictures of an analysis: Python draws them, with matplotlib and plotly where it has them.
#pragma once

#include <string>
#include <vector>

#include "tools/base/json.h"

namespace oomrec::tools::views {

struct Drawn {
  std::vector<std::string> files;  // absolute
  std::string missing;             // what was not drawn, and what to install; empty: all was
};

// `data`: Analysis::drawing(). Into `directory`, which is made. Throws Error where nothing could be
// drawn, as without Python.
Drawn draw(const Json& data, const std::string& directory);

}  // namespace oomrec::tools::views
