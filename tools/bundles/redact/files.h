// The JSON files of a bundle without what tells of its machine and user.
#pragma once

#include <string_view>

#include "tools/base/json.h"
#include "tools/bundles/redact/words.h"

namespace oomrec::tools::bundles {

// `json`: what is in `file`, such as "environment.json". Every text in it loses paths and names;
// members that are all about the machine, its user or other people's programs lose their value.
Json redacted_file(std::string_view file, Json json, const RedactedWords& words);

}  // namespace oomrec::tools::bundles
