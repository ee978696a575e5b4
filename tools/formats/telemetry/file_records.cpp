#include "tools/formats/telemetry/file_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>

#include "tools/base/csv.h"
#include "tools/base/text.h"
#include "tools/formats/telemetry/fields.h"
#include "tools/formats/telemetry/python_value.h"
#include "tools/formats/telemetry/records.h"

namespace oomrec::tools::formats {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// Removes the byte order mark, and replaces a UTF-8 character that is cut off at the end.
void decode(std::string& text) {
  const std::size_t mark = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  const std::size_t valid = mark + utf8_prefix(std::string_view{text}.substr(mark));
  if (valid < text.size()) {
    if (!is_cut_character(std::string_view{text}.substr(valid)))
      throw TelemetryProblem{"encoding", fmt::format("it is not UTF-8 text: byte {}", valid)};
    text.replace(valid, text.npos, kReplacement);
  }
  text.erase(0, mark);
}

std::string_view stripped(std::string_view text, std::string_view blanks) {
  const std::size_t begin = std::min(text.find_first_not_of(blanks), text.size());
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

FileRecords lines_of_json(std::string_view text) {
  FileRecords records;
  JsonBudget budget;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (stripped(line, kBlanks).empty()) continue;
    Json row = parsed_json(line, budget);
    budget.take(2 * sizeof row);  // a vector has up to twice the capacity it needs
    if (!row.is_discarded()) {
      records.rows.push_back(std::move(row));
    } else if (end == text.npos && !records.rows.empty()) {
      records.cut = true;
    } else {
      throw TelemetryProblem{"json", fmt::format("line {} is not JSON", number)};
    }
  }
  return records;
}

// {"timestamps": […], "allocated": […], "reserved": […]} as rows of version 1.
std::vector<Json> rows_of_timeline(const Json& timeline) {
  const Json& times = member(timeline, "timestamps");
  const Json& allocated = member(timeline, "allocated");
  const Json& reserved = member(timeline, "reserved");
  if (!allocated.is_array() || allocated.size() != times.size() || !reserved.is_array() ||
      reserved.size() != times.size())
    throw TelemetryProblem{"timeline", "timestamps, allocated and reserved are not equally long"};
  std::vector<Json> rows;
  for (std::size_t i = 0; i < times.size(); ++i)
    rows.push_back(
        {{"timestamp", times[i]}, {"allocated", allocated[i]}, {"reserved", reserved[i]}});
  return rows;
}

// The records in a document: its elements, a list under a known key, the rows of a time line, or
// the document itself.
FileRecords document(Json all, const std::optional<std::string>& events_key) {
  const auto rows = [](Json& list) {
    return FileRecords{std::vector<Json>(std::make_move_iterator(list.begin()),
                                         std::make_move_iterator(list.end()))};
  };
  if (all.is_array()) return rows(all);
  if (events_key) {
    if (member(all, *events_key).is_array()) return rows(all[*events_key]);
    throw TelemetryProblem{
        "no_events",
        fmt::format("Top-level key '{}' must contain a list of events", clip(*events_key, 60))};
  }
  for (const std::string_view key : {"events", "telemetry_events", "function_calls"})
    if (member(all, key).is_array()) return rows(all[key]);
  if (member(all, "timestamps").is_array()) return {rows_of_timeline(all), true};
  bool is_record = all.contains(kVersionKey) || call_of(all);
  const TelemetryFields& table = telemetry_fields();
  for (const auto& [name, kind] : table.fields[*table.find("timestamp_ns")].version_1)
    is_record = is_record || all.contains(name);
  if (!is_record)
    throw TelemetryProblem{
        "no_events", "there are no telemetry events: no list, no key \"events\", no timestamp"};
  return {{std::move(all)}};
}

// The cell's number, else its text. 17.0 becomes 17: some writers use floats in columns with gaps.
Json number_of_cell(const std::string& text) {
  std::string_view digits = stripped(text, " \t");
  if (digits.starts_with('+')) {
    digits.remove_prefix(1);
    if (digits.starts_with('-')) return text;
  }
  if (const auto whole = parse_number<std::int64_t>(digits)) return *whole;
  const bool too_large = digits.find_first_of(".eE") == digits.npos;
  const bool is_word = digits.find_first_not_of("0123456789.eE+-") != digits.npos;  // inf, nan
  const auto number = parse_number<double>(digits);
  if (too_large || is_word || !number) return text;
  constexpr double kExact = 9007199254740992.0;  // 2^53
  const bool is_whole = std::trunc(*number) == *number && std::fabs(*number) < kExact;
  return is_whole ? Json(static_cast<std::int64_t>(*number)) : Json(*number);
}

// Metadata in a cell: JSON, or a value as Python prints it; else the text itself.
Json metadata_of_cell(const std::string& text, JsonBudget& budget) {
  if (Json value = parsed_json(text, budget); !value.is_discarded()) return value;
  if (const auto json = json_of_python(text))
    if (Json value = parsed_json(*json, budget); !value.is_discarded()) return value;
  return text;
}

Json value_of_cell(const std::string& column, const std::string& text, JsonBudget& budget) {
  if (telemetry_fields().text_columns.contains(column)) return text;
  return column == "metadata" ? metadata_of_cell(text, budget) : number_of_cell(text);
}

// A row as a JSON record. An empty cell becomes null if version 2 requires the field; else the
// field is left out.
Json record_of(const std::vector<std::string>& columns, const std::vector<std::string>& cells,
               JsonBudget& budget) {
  Json record = Json::object();
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (!is_blank(cells[i]))  // columns differ: there is no earlier member to look for
      record.items().push_back({columns[i], value_of_cell(columns[i], cells[i], budget)});
  if (!record.contains(kVersionKey)) return record;
  for (const std::string& column : columns) {
    const auto index = telemetry_fields().find(column);
    if (!index || record.contains(column)) continue;
    const TelemetryField& field = telemetry_fields().fields[*index];
    if (!field.optional) record[column] = field.kind.base == "object" ? Json::object() : Json();
  }
  return record;
}

std::vector<std::string> columns_of(const std::vector<std::string>& header) {
  std::vector<std::string> columns;
  std::set<std::string> seen;
  for (const std::string& cell : header) {
    columns.emplace_back(stripped(cell, kBlanks));
    if (!seen.insert(columns.back()).second)
      throw TelemetryProblem{"columns",
                             fmt::format("there are two columns \"{}\"", columns.back())};
  }
  return columns;
}

FileRecords table(std::string_view text) {
  CsvRows csv = csv_rows(text);
  if (csv.too_large)
    throw TelemetryProblem{"size", fmt::format("it has more than {} cells", kMostCsvCells)};
  if (csv.open_quote_line != 0)
    throw TelemetryProblem{"quote",
                           fmt::format("line {}: a quote is not closed", csv.open_quote_line)};
  auto& rows = csv.rows;
  if (rows.empty() || rows[0].size() < 2)
    throw TelemetryProblem{"table", "it is neither JSON nor a table"};
  const std::vector<std::string> columns = columns_of(rows[0]);
  FileRecords records;
  JsonBudget budget;
  records.cut = csv.cut;
  if (!csv.ended && rows.size() > 1 && rows.back().size() < columns.size()) {
    rows.pop_back();
    records.cut = csv.ended = true;
  }
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].size() != columns.size())
      throw TelemetryProblem{"cells", fmt::format("row {} has {} cells, and there are {} columns",
                                                  i, rows[i].size(), columns.size())};
    records.rows.push_back(record_of(columns, rows[i], budget));
    rows[i] = {};
  }
  records.may_be_cut = !csv.ended && !records.rows.empty();
  return records;
}

FileRecords read_records(std::string contents, const std::optional<std::string>& events_key) {
  decode(contents);
  std::string_view text = contents;
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  if (text.empty())
    throw TelemetryProblem{"empty", "it is empty: there is nothing to analyze in it"};
  if (text[0] != '[' && text[0] != '{') return table(text);
  JsonBudget budget;
  Json all = parsed_json(text, budget);
  if (!all.is_discarded()) return document(std::move(all), events_key);
  if (text[0] == '{') return lines_of_json(text);
  throw TelemetryProblem{"json", "it starts like JSON, but is not valid JSON"};
}

constexpr std::size_t kMostRecords = std::size_t{1} << 19;

}  // namespace

FileRecords records_of(std::string contents, const std::optional<std::string>& events_key) {
  try {
    FileRecords records = read_records(std::move(contents), events_key);
    if (records.rows.size() > kMostRecords)
      throw TelemetryProblem{"size", fmt::format("it has more than {} records", kMostRecords)};
    return records;
  } catch (const JsonTooLarge& problem) {
    throw TelemetryProblem{"size", fmt::format("it {}", problem.what())};
  }
}

}  // namespace oomrec::tools::formats
