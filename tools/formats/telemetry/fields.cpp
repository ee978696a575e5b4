#include "tools/formats/telemetry/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "tools/base/json.h"
#include "tools/base/text.h"

namespace oomrec::tools::formats {
namespace {

constexpr std::string_view kTable =
#include "tools/formats/telemetry/telemetry_fields.inc"
    ;

TelemetryKind kind_of(const std::string& words) {
  const std::size_t at = words.find(" or ");
  if (at == words.npos) return {words, ""};
  return {words.substr(0, at), words.substr(at + 4)};
}

TelemetryField::Names names_of(const Json& row, std::string_view key) {
  TelemetryField::Names names;
  if (const Json& found = member(row, key); found.is_object())
    for (const auto& [name, kind] : found.items())
      names.emplace_back(name, kind_of(kind.get<std::string>()));
  return names;
}

TelemetryField field_of(const Json& row) {
  TelemetryField field;
  field.key = row.at("key").text();
  field.kind = kind_of(row.at("is").text());
  field.optional = row["optional"] == true;
  if (row.contains("least")) field.least = row.at("least").get<std::int64_t>();
  field.version_1 = names_of(row, "version_1");
  field.in_metadata = names_of(row, "in_metadata");
  field.default_value = member(row, "default");
  field.default_beside = member(row, "default_beside");
  field.default_as = text_of(row, "default_as").value_or("");
  for (const Json& key : row["default_difference"]) field.default_difference.push_back(key.text());
  return field;
}

TelemetryFields read_table() {
  const Json table = parse_json(kTable);
  TelemetryFields all;
  all.version = table.at("schema_version").get<std::int64_t>();
  all.later_versions = table.at("later_versions");
  for (const Json& row : table.at("fields")) all.fields.push_back(field_of(row));
  all.devices = table.at("devices");
  all.collectors = table.at("collectors");
  all.notes = table.at("notes");
  for (std::size_t i = 0; i < all.fields.size(); ++i) all.by_key[all.fields[i].key] = i;
  const auto pairs = [&](const char* name) {
    TelemetryFields::Pairs found;
    for (const Json& keys : table.at(name))
      found.emplace_back(all.by_key.at(keys[0].text()), all.by_key.at(keys[1].text()));
    return found;
  };
  all.at_most = pairs("at_most");
  all.less_than = pairs("less_than");
  for (const TelemetryField& field : all.fields)
    for (const auto& [name, kind] : field.version_1)
      if (kind.is_text()) all.text_columns.insert(name);
  return all;
}

[[noreturn]] void reject_field(const char* reason, std::string_view key, std::string_view why) {
  throw TelemetryProblem{reason, fmt::format("{} {}", key, why)};
}

std::string shown(const Json& value) { return clip(json_text(value), 60); }

void check_value(const TelemetryField& field, const Json& value) {
  if (value.is_null() && field.kind.otherwise == "null") return;
  if (field.kind.base == "integer") {
    if (!is_integer(value)) reject_field("type", field.key, "is not an integer: " + shown(value));
    const auto number = value.get<std::int64_t>();
    if (field.least && number < *field.least)
      reject_field("value", field.key, fmt::format("is {}, less than {}", number, *field.least));
  } else if (field.kind.base == "object") {
    if (!value.is_object()) reject_field("type", field.key, "is not an object: " + shown(value));
  } else {
    if (!value.is_string()) reject_field("type", field.key, "is not text: " + shown(value));
    if (field.kind.base == "text" && is_blank(value.text()))
      reject_field("value", field.key, "is empty");
  }
}

// Both values of a pair; nothing: one is unknown.
std::optional<std::pair<std::int64_t, std::int64_t>> both(
    const std::vector<const Json*>& values, const std::pair<std::size_t, std::size_t>& pair) {
  const Json *const first = values[pair.first], *const second = values[pair.second];
  if (first == nullptr || first->is_null() || second == nullptr || second->is_null())
    return std::nullopt;
  return std::pair{first->get<std::int64_t>(), second->get<std::int64_t>()};
}

}  // namespace

std::optional<std::size_t> TelemetryFields::find(std::string_view key) const {
  const auto at = by_key.find(key);
  return at != by_key.end() ? std::optional{at->second} : std::nullopt;
}

const TelemetryFields& telemetry_fields() {
  static const TelemetryFields kFields = read_table();
  return kFields;
}

bool is_integer(const Json& value) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return value.is_number_integer() &&
         !(value.is_number_unsigned() && value.get<std::uint64_t>() > kMost);
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\n\r\v\f") == text.npos; }

std::vector<const Json*> checked_values(const Json& record) {
  const TelemetryFields& table = telemetry_fields();
  std::vector<const Json*> values(table.fields.size());
  std::vector<std::string> unknown;
  for (const auto& [key, value] : record.items()) {
    if (const auto index = table.find(key))
      values[*index] = &value;
    else if (key != kVersionKey)
      unknown.push_back(printable(key));
  }
  std::vector<std::string_view> missing;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] == nullptr && !table.fields[i].optional) missing.push_back(table.fields[i].key);
  if (!missing.empty())
    reject_field("missing", fmt::format("{}", fmt::join(missing, ", ")),
                 missing.size() == 1 ? "is missing" : "are missing");
  if (!unknown.empty())
    reject_field("unknown", fmt::format("{}", fmt::join(unknown, ", ")),
                 "is not a key of version 2");
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != nullptr) check_value(table.fields[i], *values[i]);
  for (const auto& pair : table.at_most)
    if (const auto numbers = both(values, pair); numbers && numbers->first > numbers->second)
      reject_field("contradiction", table.fields[pair.first].key,
                   "is more than " + table.fields[pair.second].key);
  for (const auto& pair : table.less_than) {
    const Json *const first = values[pair.first], *const second = values[pair.second];
    // Without the second, the smallest that exceeds the first counts: there must be one.
    const bool none = first != nullptr && second == nullptr &&
                      first->get<std::int64_t>() == std::numeric_limits<std::int64_t>::max();
    if (const auto numbers = both(values, pair);
        none || (numbers && numbers->first >= numbers->second))
      reject_field("contradiction", table.fields[pair.first].key,
                   "is not less than " + table.fields[pair.second].key);
  }
  return values;
}

void check_version(const Json& version) {
  const std::int64_t expected = telemetry_fields().version;
  if (!is_integer(version) || version.get<std::int64_t>() != expected)
    throw TelemetryProblem{
        "version", fmt::format("Unsupported {}: {}; oomrec reads versions {} to 4, and version 1, "
                               "which has no such key",
                               kVersionKey, shown(version), expected)};
}

}  // namespace oomrec::tools::formats
