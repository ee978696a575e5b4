#include "tools/bundles/options.h"

#include "tools/symbolize/debug_files.h"

namespace oomrec::tools {

void ReadOptions::add_to(Arguments& arguments, const std::string& what) {
  arguments.positional("BUNDLE", bundle, what);
  arguments.flag("--json", json, "print JSON (docs/json.md)");
  arguments.flag("--debuginfod", debuginfod,
                 "fetch missing debug information from the servers of DEBUGINFOD_URLS");
  arguments.option("--debug-dir", "DIR[:DIR]", debug_directories,
                   "further directories of debug files, laid out like /usr/lib/debug");
  arguments.option("--source-dir", "DIR", source_directory,
                   "where source files are that were elsewhere on the machine of the recording");
  arguments.flag("--no-cache", no_cache,
                 "look for every name anew, and keep none (~/.cache/oomrec)");
}

Source ReadOptions::open(const std::string& named) const {
  use_debug_files({debug_directories, debuginfod});
  Source source = open_source(named, no_cache ? nullptr : CacheDirectory::of_user());
  source.lines = std::make_unique<SourceLines>(*source.recording, source_directory);
  return source;
}

}  // namespace oomrec::tools
