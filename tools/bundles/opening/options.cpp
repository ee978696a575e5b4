#include "tools/bundles/opening/options.h"

#include <fmt/format.h>

#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/open.h"
#include "tools/bundles/ranks/merged.h"
#include "tools/recording/symbolize/debug_files.h"

namespace oomrec::tools::bundles {
namespace {

std::uint32_t number_of_rank(const std::string& text) {
  const auto rank = parse_number<std::uint32_t>(text);
  if (!rank) throw invalid_value("--rank", text, "Use a whole number.");
  return *rank;
}

}  // namespace

void ReadOptions::add_to(Arguments& arguments, const std::string& what) {
  arguments.positional("BUNDLE", bundle, what);
  add_options_to(arguments);
}

void ReadOptions::add_options_to(Arguments& arguments) {
  arguments.flag("--json", json, "print JSON (docs/json.md)");
  arguments.flag("--debuginfod", debuginfod,
                 "fetch missing debug information from the servers in DEBUGINFOD_URLS");
  arguments.option("--debug-dir", "DIR[:DIR]", debug_directories,
                   "more directories of debug files, laid out like /usr/lib/debug");
  arguments.option("--source-dir", "DIR", source_directory,
                   "where to find source files that were elsewhere on the recorded machine");
  arguments.option("--rank", "N", rank,
                   "read only rank N of a merged bundle or a directory of ranks' bundles");
  arguments.flag("--no-cache", no_cache, "do not use the cache of symbols (~/.cache/oomrec)");
}

void require_one_process(const Source& source, const std::string& what) {
  if (!source.is_job()) return;
  throw Error{Exit::bad_input,
              fmt::format("{} works on one process, and this is a job of several", what),
              "Choose a rank: --rank N (its own bundle is in the merged one, as ranks/N)."};
}

Source ReadOptions::open(const std::string& named) const {
  recording::use_debug_files({debug_directories, debuginfod});
  if (cache == nullptr && !no_cache) cache = recording::CacheDirectory::of_user();
  Source source = open_source(named, cache);
  if (!rank.empty()) source = open_source(bundle_of_rank(source, number_of_rank(rank)), cache);
  source.lines = std::make_unique<recording::SourceLines>(*source.recording, source_directory);
  return source;
}

}  // namespace oomrec::tools::bundles
