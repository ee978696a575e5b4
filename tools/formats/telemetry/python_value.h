// Values as Python writes them: json with NaN and lone surrogates, and repr() in cells of
// csv.DictWriter and pandas.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/base/json.h"

namespace oomrec::tools::formats {

// Converts the value to JSON (with NaN and Infinity: parsed_json()). Tuples become lists, and keys
// strings. Nothing: JSON has no such value. Other errors are left to the JSON parser.
std::optional<std::string> json_of_python(std::string_view text);

// Parses JSON as Python's json module writes it: with NaN and Infinity, and with lone surrogates.

// A lone surrogate becomes U+FFFD (Python writes them for file names that are not UTF-8). Returns a
// discarded value if the text is not JSON, or is nested deeper than any record. Throws
// JsonTooLarge.
Json parsed_json(std::string_view text, JsonBudget& budget);

}  // namespace oomrec::tools::formats
