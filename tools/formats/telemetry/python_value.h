// Values as Python prints them: dictionaries in cells that csv.DictWriter and pandas wrote.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace oomrec::tools::formats {

// The same value as JSON (with NaN and Infinity: lenient_json.h); a tuple is a list there, a key a
// string. Nothing where JSON has no such value; what is wrong otherwise, the JSON's parser finds.
std::optional<std::string> json_of_python(std::string_view text);

}  // namespace oomrec::tools::formats
