#include "tools/base/csv.h"

#include <algorithm>

namespace oomrec::tools {
namespace {

constexpr std::string_view kFormula = "=+-@\t";

// Ignores apostrophes in front.
bool is_formula(std::string_view cell) {
  const std::size_t at = cell.find_first_not_of('\'');
  return at != cell.npos && kFormula.find(cell[at]) != kFormula.npos;
}

bool is_blank_line(const std::vector<std::string>& row) {
  return row.size() == 1 && row[0].find_first_not_of(" \t\n\r\v\f") == std::string::npos;
}

std::size_t line_at(std::string_view text, std::size_t at) {
  std::size_t line = 1;
  for (std::size_t i = 0; i < at; ++i)
    line += text[i] == '\n' || (text[i] == '\r' && text.substr(i + 1, 1) != "\n");
  return line;
}

}  // namespace

std::string csv_cell(std::string text) {
  if (is_formula(text)) text.insert(0, 1, '\'');
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string{"\"\""} : std::string{c};
  return quoted + '"';
}

std::string csv_cell(const Json& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return csv_cell(value.get<std::string>());
  return value.is_structured() ? csv_cell(json_text(value)) : value.dump();
}

CsvRows csv_rows(std::string_view text) {
  CsvRows csv;
  std::vector<std::string> row;
  std::string cell;
  std::size_t cell_begin = 0, cells = 0;
  bool quoted = false;
  const auto end_cell = [&](std::size_t at) {
    if (cell.starts_with('\'') && is_formula(cell)) cell.erase(0, 1);
    row.push_back(std::move(cell));
    ++cells;
    cell.clear();
    cell_begin = at + 1;
  };
  const auto end_row = [&](std::size_t at) {
    end_cell(at);
    if (!is_blank_line(row)) {
      csv.rows.push_back(std::move(row));
      csv.ended = at != text.size();
    }
    row.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (cells > kMostCsvCells) {
      csv.too_large = true;
      return csv;
    }
    const char c = text[i];
    if (quoted) {
      const bool doubled = c == '"' && i + 1 < text.size() && text[i + 1] == '"';
      if (c == '"' && !doubled) {
        quoted = false;
      } else {
        cell += c;
        i += doubled;
      }
    } else if (c == '"' && i == cell_begin) {
      quoted = true;
    } else if (c == ',') {
      end_cell(i);
    } else if (c == '\n' || c == '\r') {
      end_row(i);
    } else {
      cell += c;
    }
  }
  if (!quoted) {
    if (cell_begin < text.size() || !row.empty()) end_row(text.size());
  } else if (text.find_first_of("\r\n", cell_begin) != text.npos) {
    csv.open_quote_line = line_at(text, cell_begin);
  } else {
    csv.cut = csv.ended = true;
  }
  return csv;
}

}  // namespace oomrec::tools
