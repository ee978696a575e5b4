// Paths that the user gave, made absolute while the working directory is theirs.
#pragma once

#include <span>

namespace oomrec::recorder {

// `path` made absolute in `out`. What does not fit is cut, and creating it will say so.
void make_absolute(const char* path, std::span<char> out) noexcept;

}  // namespace oomrec::recorder
