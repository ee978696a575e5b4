// Makes the user's paths absolute while the working directory is still the one they started in.
#pragma once

#include <span>

namespace oomrec::recorder {

// Writes `path`, made absolute, to `out`. A path that does not fit is cut: creating it will fail.
void make_absolute(const char* path, std::span<char> out) noexcept;

}  // namespace oomrec::recorder
