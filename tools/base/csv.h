// Writes cells and reads rows of comma-separated values (RFC 4180, but lines end with \n).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tools/base/json.h"

namespace oomrec::tools {

// Names in a recording are untrusted: an apostrophe precedes a cell that a spreadsheet would run as
// a formula. A cell that already has one there gets a second, so that csv_rows() can undo it.
std::string csv_cell(std::string text);
std::string csv_cell(const Json& value);  // null is empty; arrays and objects are JSON

inline constexpr std::size_t kMostCsvCells = std::size_t{1} << 22;

struct CsvRows {
  std::vector<std::vector<std::string>> rows;  // including the header
  bool too_large = false;                      // more than kMostCsvCells: the rest is not in `rows`
  bool ended = true;                           // the last row has a line end
  bool cut = false;                 // the last line ends within quotes, and is not in `rows`
  std::size_t open_quote_line = 0;  // where a quote starts that no later line closes
};

// Removes the apostrophes that csv_cell() added. Text after a closing quote belongs to the cell.
// Lines may also end with \r\n or \r; empty lines are skipped.
CsvRows csv_rows(std::string_view text);

}  // namespace oomrec::tools
