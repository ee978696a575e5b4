// What the reading commands have in common on their command line.
#pragma once

#include <string>

#include "tools/arguments.h"

namespace oomrec::tools {

struct ReadOptions {
  std::string bundle;
  bool json = false;
  bool debuginfod = false;

  void add_to(Arguments& arguments) {
    arguments.positional(
        "BUNDLE", bundle,
        "a bundle's directory; without it the newest in ./oom_dumps or OOMREC_DUMP_DIR");
    arguments.flag("--json", json, "print JSON (docs/bundle-format.md)");
    arguments.flag("--debuginfod", debuginfod,
                   "fetch missing debug information from the servers of DEBUGINFOD_URLS");
  }
};

}  // namespace oomrec::tools
