// The options that all reading commands share.
#pragma once

#include <memory>
#include <string>

#include "tools/base/arguments.h"
#include "tools/bundles/store/source.h"
#include "tools/recording/symbolize/cache_directory.h"

namespace oomrec::tools::bundles {

// The argument of open_source(), for --help.
inline constexpr const char* kReadable =
    "a bundle directory, a recording, the pid or program of a recorded process, or a PyTorch "
    "memory snapshot; default: the newest bundle in ./oom_dumps or OOMREC_DUMP_DIR";

struct ReadOptions {
  std::string bundle;
  bool json = false;
  bool debuginfod = false;
  std::string debug_directories;
  std::string source_directory;
  bool no_cache = false;
  std::string rank;                                                     // of a job; empty: all
  mutable std::shared_ptr<const recording::CacheDirectory> cache = {};  // of all that were opened

  void add_to(Arguments& arguments, const std::string& what = kReadable);
  // The same without BUNDLE, for a command that takes several.
  void add_options_to(Arguments& arguments);

  // Opens `bundle`, or `named` where a command takes several, with symbols and sources as these
  // options say.
  Source open() const { return open(bundle); }
  Source open(const std::string& named) const;
};

// Throws Error if the source is a job: its combined recording has no blocks and events. `what`
// names what needs them: "fragmentation".
void require_one_process(const Source& source, const std::string& what);

}  // namespace oomrec::tools::bundles
