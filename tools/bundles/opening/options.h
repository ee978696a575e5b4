// What the reading commands have in common on their command line.
#pragma once

#include <memory>
#include <string>

#include "tools/base/arguments.h"
#include "tools/bundles/store/source.h"
#include "tools/recording/symbolize/cache_directory.h"

namespace oomrec::tools::bundles {

// What open_source() takes, for --help.
inline constexpr const char* kReadable =
    "a bundle's directory, a recording, the number or program of a recorded process, or a memory "
    "snapshot of PyTorch's; without it the newest bundle in ./oom_dumps or OOMREC_DUMP_DIR";

struct ReadOptions {
  std::string bundle;
  bool json = false;
  bool debuginfod = false;
  std::string debug_directories;
  std::string source_directory;
  bool no_cache = false;
  std::string rank;  // of a job's; empty: all

  void add_to(Arguments& arguments, const std::string& what = kReadable);

  // What is to be read, by names that are found as these options say: open_source(). `named`: where
  // a command takes several.
  Source open() const { return open(bundle); }
  Source open(const std::string& named) const;
};

// Throws Error where the source is a job's, whose recording has no single blocks and events. `what`
// needs them: "fragmentation".
void refuse_job(const Source& source, const std::string& what);

}  // namespace oomrec::tools::bundles
