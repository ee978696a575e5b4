// Opens a PyTorch memory snapshot as a source of the reading commands.
#pragma once

#include <filesystem>
#include <optional>

#include "tools/base/foreign_file.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

// Whether the file begins like a pickle.
bool is_snapshot(const ForeignPath& file);

// The snapshot that the Python package added to a bundle, if there is one.
std::optional<ForeignPath> snapshot_in(const std::filesystem::path& bundle);

// Throws Error.
Source open_snapshot(const ForeignPath& file);

}  // namespace oomrec::tools::bundles
