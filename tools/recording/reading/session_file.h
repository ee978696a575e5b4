// Recognizes a recording without opening it as one.
#pragma once

#include <filesystem>

namespace oomrec::tools::recording {

// Whether the file begins like a recording. False if it is not a readable regular file.
bool is_session_file(const std::filesystem::path& file);

}  // namespace oomrec::tools::recording
