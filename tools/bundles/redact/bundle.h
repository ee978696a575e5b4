// A bundle to be given away: without host, user, arguments, working directory, environment, source
// lines and the words its user gave, its paths shortened.
#pragma once

#include <filesystem>

#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

// Of a bundle that was made so: what is in it, and what is not.
inline constexpr const char* kRedactedName = "redacted.json";

Json redacted_note();  // what is in that file

bool is_redacted(const Source& source);

// Makes the directory `to`, which must not be there yet. Throws Error; then nothing is left of it.
void write_redacted(const Source& source, const std::filesystem::path& to);

}  // namespace oomrec::tools::bundles
