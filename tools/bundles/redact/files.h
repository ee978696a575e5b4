// Redacts the JSON files of a bundle; symbols.json is made anew.
#pragma once

#include <string_view>

#include "tools/base/json.h"
#include "tools/bundles/redact/text_redactor.h"
#include "tools/recording/symbolize/locations.h"

namespace oomrec::tools::bundles {

// `json`: the contents of `file`, such as "environment.json". Shortens paths and removes names in
// every text. Clears members about the machine, its user or other programs.
Json redacted_file(std::string_view file, Json json, const TextRedactor& redactor);

// symbols.json for every native frame of a recording. With shortened paths, readers cannot find the
// program's files to symbolize later.

Json all_symbols(const recording::Recording& recording, recording::Locations& locations,
                 const TextRedactor& redactor);

}  // namespace oomrec::tools::bundles
