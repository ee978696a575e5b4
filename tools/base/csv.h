// Comma-separated values (RFC 4180, but for a plain newline): cells written, rows read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/base/json.h"

namespace oomrec::tools {

// A cell that a spreadsheet would take for a formula gets an apostrophe before it: names in a
// recording are not ours.
std::string csv_cell(std::string text);
std::string csv_cell(const Json& value);  // null is empty; what is nested is JSON

// All rows, the first one too. An apostrophe that csv_cell() put there is taken away; what follows
// a closing quote counts as text. Lines may end with \r\n; empty ones are left out.
std::vector<std::vector<std::string>> csv_rows(std::string_view text);

}  // namespace oomrec::tools
