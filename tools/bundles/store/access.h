// What may not be read: bundles are for their owner alone.
#pragma once

#include <filesystem>
#include <vector>

namespace oomrec::tools::bundles {

// False where the user lacks the right, and only then: what is not there may be read.
bool may_read(const std::filesystem::path& path);

// Throws Error with bad_input where a file, or a directory with what is in it, may not be read: it
// says whose it is, and what to do.
void refuse_unreadable(const std::filesystem::path& path);

// Directories named like bundles in a dump directory that may not be read.
std::vector<std::filesystem::path> closed_bundles_in(const std::filesystem::path& directory);

}  // namespace oomrec::tools::bundles
