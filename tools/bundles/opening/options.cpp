#include "tools/bundles/opening/options.h"

#include <fmt/format.h>

#include <charconv>

#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/open.h"
#include "tools/bundles/ranks/merged.h"
#include "tools/recording/symbolize/debug_files.h"

namespace oomrec::tools::bundles {
namespace {

std::uint32_t number_of_rank(const std::string& text) {
  std::uint32_t rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error == std::errc{} && end == text.data() + text.size()) return rank;
  throw Error{Exit::bad_input, fmt::format("--rank {} is not understood", printable(text)),
              "Give a whole number."};
}

}  // namespace

void ReadOptions::add_to(Arguments& arguments, const std::string& what) {
  arguments.positional("BUNDLE", bundle, what);
  arguments.flag("--json", json, "print JSON (docs/json.md)");
  arguments.flag("--debuginfod", debuginfod,
                 "fetch missing debug information from the servers of DEBUGINFOD_URLS");
  arguments.option("--debug-dir", "DIR[:DIR]", debug_directories,
                   "further directories of debug files, laid out like /usr/lib/debug");
  arguments.option("--source-dir", "DIR", source_directory,
                   "where source files are that were elsewhere on the machine of the recording");
  arguments.option("--rank", "N", rank,
                   "of a merged bundle, or a directory of ranks' bundles: one");
  arguments.flag("--no-cache", no_cache,
                 "look for every name anew, and keep none (~/.cache/oomrec)");
}

void refuse_job(const Source& source, const std::string& what) {
  if (!source.is_job()) return;
  throw Error{Exit::bad_input, fmt::format("{} is told of one process, and this is a job's", what),
              "Choose a rank: --rank N (its own bundle is in the merged one, as ranks/N)."};
}

Source ReadOptions::open(const std::string& named) const {
  recording::use_debug_files({debug_directories, debuginfod});
  const auto cache = no_cache ? nullptr : recording::CacheDirectory::of_user();
  Source source = open_source(named, cache);
  if (!rank.empty()) source = open_source(bundle_of_rank(source, number_of_rank(rank)), cache);
  source.lines = std::make_unique<recording::SourceLines>(*source.recording, source_directory);
  return source;
}

}  // namespace oomrec::tools::bundles
