#include "tools/processes/launch/recorded.h"

#include <cstdlib>

#include "common/program/suitability.h"
#include "tools/processes/launch/library.h"

namespace oomrec::tools::processes {

std::string why_unrecordable(const std::string& path) {
  const program::Suitability found = program::inspect(path.c_str()).suitability;
  return found == program::Suitability::suitable ? std::string{}
                                                 : std::string{program::meaning_of(found)};
}

Settings recording_settings(const RunOptions& options) {
  Settings settings = options.settings();
  settings.emplace_back("LD_PRELOAD",
                        preload_value(preloadable_path(find_library()), std::getenv("LD_PRELOAD")));
  if (options.in_force().python_objects) settings.emplace_back("PYTHONMALLOC", "malloc");
  return settings;
}

}  // namespace oomrec::tools::processes
