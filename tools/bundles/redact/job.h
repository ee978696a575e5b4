// The bundles of a job's ranks, to be given away: each redacted, and merged anew.
#pragma once

#include <filesystem>

#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

// `job`: of a merged bundle, or of a directory of ranks' bundles. Makes the directory `to`, which
// must not be there yet, a merged bundle. Throws Error; then nothing is left of it.
void write_redacted_job(const Source& job, const std::filesystem::path& to);

}  // namespace oomrec::tools::bundles
