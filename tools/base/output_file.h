// Writes an output file of a command.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace oomrec::tools {

enum class IfExists : std::uint8_t { fail, overwrite };

// Writes the file with mode 0600, like the files of bundles. Throws Error, and leaves no partial
// file.
void write_output(const std::filesystem::path& file, const std::string& bytes, IfExists if_exists);

// Writes a file of a directory, such as a bundle, under a temporary name, and renames it when it is
// complete. Follows no link in the directory. Throws Error.
void replace_file(const std::filesystem::path& directory, const std::string& name,
                  const std::string& bytes);

}  // namespace oomrec::tools
