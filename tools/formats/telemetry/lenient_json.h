// JSON as Python's own writer makes it: with NaN and Infinity, and with halves of surrogate pairs.
#pragma once

#include <string_view>

#include "tools/base/json.h"

namespace oomrec::tools::formats {

// Half of a surrogate pair, which a file name that is not UTF-8 leaves behind, becomes U+FFFD.
// Returns a discarded value for text that is not JSON, or nested deeper than any record is.
Json parsed_json(std::string_view text);

}  // namespace oomrec::tools::formats
