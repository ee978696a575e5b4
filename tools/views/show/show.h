// A bundle as a page and as JSON (docs/commands/show.md): why it was written, the failed request,
// the holders, and how the process ended.
#pragma once

#include <string>

#include "tools/base/json.h"
#include "tools/base/terminal.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::views {

struct ShowStyle {
  unsigned top = 0;   // number of largest holders; 0: those with 1 % or more, 10 at most
  bool full = false;  // every frame, rank, process and metadata entry
  std::string at;     // holders at "peak" or "end"; empty: sections::moment_of()
};

void print_show_page(const bundles::Source& source, const ShowStyle& style,
                     const Terminal& terminal);

Json show_json(const bundles::Source& source, const ShowStyle& style);

}  // namespace oomrec::tools::views
