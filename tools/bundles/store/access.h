// Access checks: a bundle is readable by its owner only.
#pragma once

#include <filesystem>
#include <vector>

namespace oomrec::tools::bundles {

// False only if the user lacks the permission. True for a path that does not exist.
bool may_read(const std::filesystem::path& path);

// Throws Error with bad_input if the user may not read the file, or list and enter the directory.
// The message names the owner and what to do.
void require_readable(const std::filesystem::path& path);

// Whether what is in the bundle was written by this user's programs and commands: other users may
// put bundles into a shared dump directory. Some network file systems give all files another owner.
// So a bundle is this user's, or its owner is that of the dump directory, to which nobody else may
// write. Does not follow a link.
bool is_own_bundle(const std::filesystem::path& bundle);

// Directories in a dump directory that are named like bundles and that the user may not read.
std::vector<std::filesystem::path> unreadable_bundles_in(const std::filesystem::path& directory);

}  // namespace oomrec::tools::bundles
