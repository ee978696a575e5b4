// Texts that are not quite JSON: what Python's own writers make.
#pragma once

#include <string_view>

#include "tools/json.h"

namespace oomrec::tools {

// A JSON text with Python's NaN and Infinity, and halves of surrogate pairs, which become U+FFFD.
// Discarded where it is none, or nested deeper than any record is.
Json parsed_json(std::string_view text);

// Metadata in a cell of a table: JSON, or a value as Python prints it. The text itself where it is
// neither.
Json parsed_literal(const std::string& text);

}  // namespace oomrec::tools
