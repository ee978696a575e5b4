// Writes a bundle from outside: of a process that lives, or of a dead one's recording.
#pragma once

#include <filesystem>
#include <string>

#include "common/bundle/bundle.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::bundles {

struct Written {
  std::filesystem::path bundle;  // empty: it could not be written, and `problem` says why
  std::string summary;           // of its verdict
  std::string problem;
};

// Into `directory`, where as many bundles stay as OOMREC_MAX_DUMPS and OOMREC_MAX_TOTAL_MB say. The
// process' group is looked for beside its recording.
Written write_bundle(const recording::Recording&, bundle::Cause, const std::string& directory);

}  // namespace oomrec::tools::bundles
