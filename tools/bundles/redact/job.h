// Writes a copy of a job to share: redacts the bundle of each rank, and merges them again.
#pragma once

#include <filesystem>

#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

// `job`: from a merged bundle, or a directory of ranks' bundles. Creates the merged bundle `to`,
// which must not exist yet. Throws Error, and then removes what it wrote.
void write_redacted_job(const Source& job, const std::filesystem::path& to);

}  // namespace oomrec::tools::bundles
