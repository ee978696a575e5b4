// Values as Python's repr() prints them, such as dictionaries in cells of csv.DictWriter and
// pandas.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace oomrec::tools::formats {

// Converts the value to JSON (with NaN and Infinity: lenient_json.h). Tuples become lists, and keys
// strings. Nothing: JSON has no such value. Other errors are left to the JSON parser.
std::optional<std::string> json_of_python(std::string_view text);

}  // namespace oomrec::tools::formats
