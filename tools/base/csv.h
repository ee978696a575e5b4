// Comma-separated values (RFC 4180, but for a plain newline): cells written, rows read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/base/json.h"

namespace oomrec::tools {

// A cell that a spreadsheet would take for a formula gets an apostrophe before it (and so does one
// that looks as if it had got one): names in a recording are not ours.
std::string csv_cell(std::string text);
std::string csv_cell(const Json& value);  // null is empty; what is nested is JSON

struct CsvRows {
  std::vector<std::vector<std::string>> rows;  // the first one too
  bool ended = true;                           // the last one has its line end
  bool cut = false;                 // the last line was cut off within quotes, and is not in `rows`
  std::size_t open_quote_line = 0;  // where a quote begins that lines behind it do not close
};

// An apostrophe that csv_cell() put there is taken away; what follows a closing quote counts as
// text. Lines may end with \r\n, or \r; empty ones are left out.
CsvRows csv_rows(std::string_view text);

}  // namespace oomrec::tools
