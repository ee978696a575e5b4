// Copies a bundle that others wrote into one of our own.
#pragma once

#include <filesystem>

namespace oomrec::tools::bundles {

// Copies the regular files and directories of `from` to `to`, which must not exist yet, and leaves
// out anything else. `from` itself may be a link. Opens each entry relative to its directory's
// descriptor, without following links, and checks it after that: another user who exchanges a file
// for a link during the copy cannot redirect it. Throws std::system_error.
void copy_bundle(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace oomrec::tools::bundles
