// Reads files that others wrote or named: only regular ones, and never more than a bound.
//
// The file is opened without waiting and checked after that: a FIFO would block, a device may act
// on being opened, and what a path names may change between a check and an open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace oomrec::tools {

// The contents. Throws std::runtime_error with the end of a sentence: "is missing", "is not a
// file", "is larger than 64 MiB", "cannot be read: Permission denied".
std::string read_foreign_file(const std::filesystem::path& file, std::uint64_t most_bytes);

// The first bytes; fewer if the file is shorter, none if it is not a readable regular file.
std::string first_bytes_of(const std::filesystem::path& file, std::size_t bytes);

}  // namespace oomrec::tools
