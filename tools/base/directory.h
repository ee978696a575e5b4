// Lists a directory.
#pragma once

#include <filesystem>
#include <vector>

namespace oomrec::tools {

// Unsorted; empty if the directory is missing or cannot be read.
std::vector<std::filesystem::directory_entry> entries_of(const std::filesystem::path& directory);

// Whether the name begins with a dot.
bool is_hidden(const std::filesystem::path& path);

}  // namespace oomrec::tools
