// Copies a bundle that others wrote into one of our own.
#pragma once

#include <filesystem>

namespace oomrec::tools::bundles {

// Copies the regular files and directories of `from` to `to`, which must not exist yet; anything
// else in it is left out. `from` itself may be a link. Beneath it everything is opened by its
// directory's descriptor and checked after that, so that nobody can put a link in the place of a
// file that was a file. Throws std::system_error.
void copy_bundle(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace oomrec::tools::bundles
