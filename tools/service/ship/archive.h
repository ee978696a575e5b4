// A redacted copy of a bundle, as one file.
#pragma once

#include <filesystem>
#include <string>

#include "tools/bundles/store/source.h"

namespace oomrec::tools::service {

// The suffix of the archives that this machine can make: "tar.zst", or "tar.gz" without zstd.
// Throws Error if it can make none.
std::string archive_suffix();

// Writes DIRECTORY/NAME.SUFFIX, which contains NAME/, where NAME is the bundle's. Returns its path;
// throws Error.
std::filesystem::path write_archive(const bundles::Source& source,
                                    const std::filesystem::path& directory,
                                    const std::string& suffix);

}  // namespace oomrec::tools::service
