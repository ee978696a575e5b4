#include "tools/base/csv.h"

#include <algorithm>

namespace oomrec::tools {
namespace {

constexpr std::string_view kFormula = "=+-@\t";

std::string without_apostrophe(std::string cell) {
  if (cell.size() > 1 && cell[0] == '\'' && kFormula.find(cell[1]) != kFormula.npos)
    cell.erase(0, 1);
  return cell;
}

}  // namespace

std::string csv_cell(std::string text) {
  if (!text.empty() && kFormula.find(text[0]) != kFormula.npos) text = '\'' + text;
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

std::vector<std::vector<std::string>> csv_rows(std::string_view text) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row;
  std::string cell;
  bool quoted = false;
  const auto end_cell = [&] {
    row.push_back(without_apostrophe(std::move(cell)));
    cell.clear();
  };
  const auto end_row = [&] {
    const bool empty = row.empty() && cell.empty();
    end_cell();
    if (!empty) rows.push_back(std::move(row));
    row.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      const bool doubled = c == '"' && i + 1 < text.size() && text[i + 1] == '"';
      if (c == '"' && !doubled) {
        quoted = false;
      } else {
        cell += c;
        i += doubled;
      }
    } else if (c == '"' && cell.empty()) {
      quoted = true;
    } else if (c == ',') {
      end_cell();
    } else if (c == '\n') {
      end_row();
    } else if (c != '\r') {
      cell += c;
    }
  }
  if (!cell.empty() || !row.empty()) end_row();
  return rows;
}

}  // namespace oomrec::tools
