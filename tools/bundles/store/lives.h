// Rows of processes that ended well: files in `lives/` in their dump directory, a line of JSON
// each.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace oomrec::tools::bundles {

// The oldest make room for new ones.
inline constexpr std::size_t kMostLives = 1000;

// Writes the row of the process `id`, unless it is there. Makes the dump directory if need be.
// False if the directory of the rows is another user's. Throws Error.
bool write_life(const std::filesystem::path& dump_directory, const std::string& id,
                const std::string& line);

// The files of rows, the oldest first; empty if the directory is another user's.
std::vector<std::filesystem::path> lives_in(const std::filesystem::path& dump_directory);
bool is_life(const std::filesystem::path& file);

// The line of a file, without its newline; nothing if it is damaged, or has been removed.
std::optional<std::string> read_life(const std::filesystem::path& file);

}  // namespace oomrec::tools::bundles
