// Writes a copy of a bundle to share: without host, user, arguments, working directory,
// environment, source lines and the user's own texts, and with shortened paths.
#pragma once

#include <filesystem>

#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

// The file in a redacted bundle that lists what was left out, shortened and kept.
inline constexpr const char* kRedactedName = "redacted.json";

Json redacted_note();  // its contents

bool is_redacted(const Source& source);

// Creates the directory `to`, which must not exist yet. Throws Error, and then removes what it
// wrote.
void write_redacted(const Source& source, const std::filesystem::path& to);

// Writes a copy of a job to share: redacts the bundle of each rank, and merges them again.

// `job`: from a merged bundle, or a directory of ranks' bundles. Creates the merged bundle `to`,
// which must not exist yet. Throws Error, and then removes what it wrote.
void write_redacted_job(const Source& job, const std::filesystem::path& to);

}  // namespace oomrec::tools::bundles
