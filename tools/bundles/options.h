// What the reading commands have in common on their command line.
#pragma once

#include <memory>
#include <string>

#include "tools/arguments.h"
#include "tools/symbolize/cache_directory.h"

namespace oomrec::tools {

struct ReadOptions {
  std::string bundle;
  bool json = false;
  bool debuginfod = false;
  bool no_cache = false;

  void add_to(Arguments& arguments) {
    arguments.positional(
        "BUNDLE", bundle,
        "a bundle's directory; without it the newest in ./oom_dumps or OOMREC_DUMP_DIR");
    arguments.flag("--json", json, "print JSON (docs/bundle-format.md)");
    arguments.flag("--debuginfod", debuginfod,
                   "fetch missing debug information from the servers of DEBUGINFOD_URLS");
    arguments.flag("--no-cache", no_cache,
                   "look for every name anew, and keep none (~/.cache/oomrec)");
  }

  std::shared_ptr<const CacheDirectory> cache() const {
    return no_cache ? nullptr : CacheDirectory::of_user();
  }
};

}  // namespace oomrec::tools
