// Opens a PyTorch memory snapshot as a source of the reading commands.
#pragma once

#include <filesystem>

#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

// Whether the file begins like a pickle.
bool is_snapshot(const std::filesystem::path& file);

// The snapshot that the Python package added to a bundle; empty if there is none.
std::filesystem::path snapshot_in(const std::filesystem::path& bundle);

// Throws Error.
Source open_snapshot(const std::filesystem::path& file);

}  // namespace oomrec::tools::bundles
