// A file that a command writes for its user.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace oomrec::tools {

enum class IfThere : std::uint8_t { refuse, overwrite };

// Writes the file, readable by its owner alone, as bundles are. Throws Error; then there is no half
// of a file.
void write_output(const std::filesystem::path& file, const std::string& bytes, IfThere if_there);

}  // namespace oomrec::tools
