// JSON as Python's own writer makes it: with NaN and Infinity, and with halves of surrogate pairs.
#pragma once

#include <string_view>

#include "tools/json.h"

namespace oomrec::tools {

// Half of a surrogate pair, as a file name that is not UTF-8 leaves it, becomes U+FFFD. Discarded
// where it is no JSON, or nested deeper than any record is.
Json parsed_json(std::string_view text);

}  // namespace oomrec::tools
