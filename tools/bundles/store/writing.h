// Writes a bundle from outside the process: of a running process, or of a dead one's recording.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "common/bundle/bundle.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::bundles {

struct WriteResult {
  std::filesystem::path bundle;  // empty if writing failed: `problem` says why
  std::string summary;           // of its verdict
  std::string problem;
};

// The most bundles that a dump directory keeps, and their total size; 0: no bound.
struct Retention {
  std::uint64_t max_dumps = 0;
  std::uint64_t max_total_bytes = 0;
};

// OOMREC_MAX_DUMPS and OOMREC_MAX_TOTAL_MB.
Retention retention_from_environment();

// Writes into `directory`. Lists the process tree from the recordings beside this one.
WriteResult write_bundle(const recording::Recording&, bundle::Cause, const std::string& directory,
                         const Retention& retention = retention_from_environment());

}  // namespace oomrec::tools::bundles
