// What the reading commands have in common on their command line.
#pragma once

#include <memory>
#include <string>

#include "tools/arguments.h"
#include "tools/bundles/source.h"
#include "tools/symbolize/cache_directory.h"

namespace oomrec::tools {

struct ReadOptions {
  std::string bundle;
  bool json = false;
  bool debuginfod = false;
  std::string debug_directories;
  std::string source_directory;
  bool no_cache = false;

  void add_to(Arguments& arguments);

  // What is to be read, by names that are found as these options say: open_source(). `named`: where
  // a command takes several.
  Source open() const { return open(bundle); }
  Source open(const std::string& named) const;
};

}  // namespace oomrec::tools
