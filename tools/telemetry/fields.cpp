#include "tools/telemetry/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "tools/text.h"

namespace oomrec::tools {
namespace {

constexpr std::string_view kTable =
#include "tools/telemetry/telemetry_fields.inc"
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
  field.key = row.at("key");
  field.kind = kind_of(row.at("is"));
  field.optional = row.value("optional", false);
  if (row.contains("least")) field.least = row.at("least").get<std::int64_t>();
  field.version_1 = names_of(row, "version_1");
  field.in_metadata = names_of(row, "in_metadata");
  field.default_value = member(row, "default");
  field.default_beside = member(row, "default_beside");
  field.default_as = row.value("default_as", "");
  field.default_difference = row.value("default_difference", std::vector<std::string>{});
  return field;
}

TelemetryFields read_table() {
  const Json table = Json::parse(kTable);
  TelemetryFields all;
  all.version = table.at("schema_version");
  for (const Json& row : table.at("fields")) all.fields.push_back(field_of(row));
  all.at_most = table.at("at_most").get<TelemetryFields::Pairs>();
  all.less_than = table.at("less_than").get<TelemetryFields::Pairs>();
  all.devices = table.at("devices");
  all.collectors = table.at("collectors");
  all.notes = table.at("notes");
  for (const TelemetryField& field : all.fields)
    for (const auto& [name, kind] : field.version_1)
      if (kind.is_text()) all.text_columns.insert(name);
  return all;
}

[[noreturn]] void refuse_field(const char* reason, std::string_view key, std::string_view why) {
  throw TelemetryProblem{reason, fmt::format("{} {}", key, why)};
}

std::string shown(const Json& value) { return clip(json_text(value), 60); }

void check_value(const TelemetryField& field, const Json& value) {
  if (value.is_null() && field.kind.otherwise == "null") return;
  if (field.kind.base == "integer") {
    if (!is_integer(value)) refuse_field("type", field.key, "is no integer: " + shown(value));
    const auto number = value.get<std::int64_t>();
    if (field.least && number < *field.least)
      refuse_field("value", field.key, fmt::format("is {}, less than {}", number, *field.least));
  } else if (field.kind.base == "object") {
    if (!value.is_object()) refuse_field("type", field.key, "is no object: " + shown(value));
  } else {
    if (!value.is_string()) refuse_field("type", field.key, "is no text: " + shown(value));
    if (field.kind.base == "text" && is_blank(value.get_ref<const std::string&>()))
      refuse_field("value", field.key, "is empty");
  }
}

// Both of a pair, where both are known.
std::optional<std::pair<std::int64_t, std::int64_t>> both(
    const Json& record, const std::pair<std::string, std::string>& keys) {
  const Json &first = member(record, keys.first), &second = member(record, keys.second);
  if (first.is_null() || second.is_null()) return std::nullopt;
  return std::pair{first.get<std::int64_t>(), second.get<std::int64_t>()};
}

}  // namespace

const TelemetryField* TelemetryFields::find(std::string_view key) const {
  const auto at = std::find_if(fields.begin(), fields.end(),
                               [&](const TelemetryField& field) { return field.key == key; });
  return at != fields.end() ? &*at : nullptr;
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

void check_record(const Json& record) {
  const TelemetryFields& table = telemetry_fields();
  std::vector<std::string> missing;
  if (!record.contains(kVersionKey)) missing.emplace_back(kVersionKey);
  for (const TelemetryField& field : table.fields)
    if (!field.optional && !record.contains(field.key)) missing.push_back(field.key);
  if (!missing.empty())
    refuse_field("missing", fmt::format("{}", fmt::join(missing, ", ")),
                 missing.size() == 1 ? "is missing" : "are missing");
  for (const auto& [key, value] : record.items())
    if (key != kVersionKey && table.find(key) == nullptr)
      refuse_field("unknown", printable(key), "is no key of version 2");
  for (const TelemetryField& field : table.fields)
    if (const auto at = record.find(field.key); at != record.end()) check_value(field, *at);
  for (const auto& keys : table.at_most)
    if (const auto pair = both(record, keys); pair && pair->first > pair->second)
      refuse_field("contradiction", keys.first, "is more than " + keys.second);
  for (const auto& keys : table.less_than)
    if (const auto pair = both(record, keys); pair && pair->first >= pair->second)
      refuse_field("contradiction", keys.first, "is not less than " + keys.second);
}

void check_version(const Json& version) {
  const std::int64_t wanted = telemetry_fields().version;
  if (!is_integer(version) || version.get<std::int64_t>() != wanted)
    refuse_field("version", kVersionKey,
                 fmt::format("is {}; {} is read, and 1, which has none", shown(version), wanted));
}

}  // namespace oomrec::tools
