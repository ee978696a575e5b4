// Redacts the JSON files of a bundle.
#pragma once

#include <string_view>

#include "tools/base/json.h"
#include "tools/bundles/redact/text_redactor.h"

namespace oomrec::tools::bundles {

// `json`: the contents of `file`, such as "environment.json". Shortens paths and removes names in
// every text. Clears members about the machine, its user or other programs.
Json redacted_file(std::string_view file, Json json, const TextRedactor& redactor);

}  // namespace oomrec::tools::bundles
