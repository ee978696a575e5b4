// A memory snapshot of PyTorch as a source of the reading commands.
#pragma once

#include <filesystem>

#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

// Whether the file begins as a pickle does.
bool is_snapshot(const std::filesystem::path& file);

// The snapshot that the Python package put into a bundle; an empty path where there is none.
std::filesystem::path snapshot_in(const std::filesystem::path& bundle);

// Throws Error.
Source open_snapshot(const std::filesystem::path& file);

}  // namespace oomrec::tools::bundles
