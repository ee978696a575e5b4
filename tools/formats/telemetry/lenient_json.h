// Parses JSON as Python's json module writes it: with NaN and Infinity, and with lone surrogates.
#pragma once

#include <string_view>

#include "tools/base/json.h"
#include "tools/base/json_budget.h"

namespace oomrec::tools::formats {

// A lone surrogate becomes U+FFFD (Python writes them for file names that are not UTF-8). Returns a
// discarded value if the text is not JSON, or is nested deeper than any record. Throws
// JsonTooLarge.
Json parsed_json(std::string_view text, JsonBudget& budget);

}  // namespace oomrec::tools::formats
