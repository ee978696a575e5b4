#include "tools/formats/telemetry/other_versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "common/system/units.h"
#include "tools/base/text.h"
#include "tools/formats/telemetry/fields.h"

namespace oomrec::tools::formats {
namespace {

using Found = std::optional<Json>;  // nothing: treat the name as missing

[[noreturn]] void reject_name(std::string_view name, std::string_view expected, const Json& value) {
  throw TelemetryProblem{
      "type", fmt::format("{} is not {}: {}", name, expected, clip(json_text(value), 60))};
}

// A value that does not fit in 64 bits stays a float, which the check of version 2 rejects.
Json whole(double value) {
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  return value > -kLimit && value < kLimit ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

Json product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result)
             ? Json(static_cast<double>(a) * static_cast<double>(b))
             : Json(result);
}

// Shifts the decimal digits of a float: multiplying 1.7e9 s by 1e9 would not be exact.
Json nanoseconds(const Json& value) {
  if (is_integer(value)) return product(value.get<std::int64_t>(), std::int64_t{kSecondNs});
  const auto seconds = value.get<double>();
  std::array<char, 512> buffer;  // enough for any double
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), seconds,
                                          std::chars_format::fixed);
  std::string digits{buffer.data(), end};
  const std::size_t point = std::min(digits.find('.'), digits.size());
  digits.resize(point + 10, '0');
  digits.erase(point, 1);
  const auto ns = parse_number<std::int64_t>(digits);
  return ns ? Json(*ns) : Json(seconds);
}

Json mebibytes(const Json& value) {
  if (is_integer(value)) return product(value.get<std::int64_t>(), std::int64_t{kMiB});
  return whole(value.get<double>() * static_cast<double>(kMiB));
}

Json bytes(const Json& value) {
  return is_integer(value) ? value : whole(std::nearbyint(value.get<double>()));
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// The number of a device as PyTorch ("cuda:1") or TensorFlow ("/GPU:1") writes it.
Found device(const Json& value) {
  if (is_integer(value)) return value;
  if (!value.is_string()) return std::nullopt;
  const Json& words = telemetry_fields().devices;
  const std::string text = lower(value.get<std::string>());
  if (text.find(words.at("host").get<std::string>()) != text.npos) return Json(-1);
  const std::size_t colon = text.rfind(':');
  const std::string digits = colon == text.npos ? text : text.substr(colon + 1);
  if (!digits.empty() && digits.find_first_not_of("0123456789") == digits.npos) {
    const auto number = parse_number<std::int64_t>(digits);
    return number ? Json(*number) : Json(digits);
  }
  const std::size_t begin = std::min(text.find_first_not_of('/'), text.size());
  for (const Json& first : words.at("first"))
    if (std::string_view{text}.substr(begin).starts_with(first.get<std::string>())) return Json(0);
  return std::nullopt;
}

Found converted(const std::string& name, const TelemetryKind& kind, const Json& value) {
  if (kind.base == "device") return device(value);
  if (value.is_null() && !kind.otherwise.empty())
    return kind.otherwise == "null" ? Found{value} : std::nullopt;
  if (kind.base == "integer") {
    if (!is_integer(value)) reject_name(name, "an integer", value);
    return value;
  }
  if (kind.is_text()) {
    const bool usable = value.is_string() && !is_blank(value.text());
    if (kind.base == "text" && kind.otherwise == "nothing" && !usable) return std::nullopt;
    return value;
  }
  if (!value.is_number() || !std::isfinite(value.get<double>()))
    reject_name(name, "a number", value);
  if (kind.otherwise == "zero" && value.get<double>() == 0) return std::nullopt;
  if (kind.base == "seconds") return nanoseconds(value);
  return kind.base == "mebibytes" ? mebibytes(value) : bytes(value);
}

Found first_of(const Json& record, const TelemetryField::Names& names) {
  for (const auto& [name, kind] : names)
    if (record.contains(name))
      if (Found value = converted(name, kind, record[name])) return value;
  return std::nullopt;
}

Json metadata_of(const Json& record) {
  const Json& given = member(record, "metadata");
  if (!given.is_null() && !given.is_object()) reject_name("metadata", "an object", given);
  Json metadata = given.is_object() ? given : Json::object();
  // A file may have a million of them: no search through all members for each. Sorted, because keys
  // that were made to collide would slow down a hash table.
  std::vector<std::pair<std::string_view, std::size_t>> given_at;
  for (std::size_t i = 0; i < given.items().size(); ++i)
    given_at.emplace_back(given.items()[i].key, i);
  std::ranges::sort(given_at);
  constexpr std::string_view kPrefix = "metadata_";
  for (const auto& [key, value] : record.items()) {
    if (!key.starts_with(kPrefix)) continue;
    const std::string_view name = std::string_view{key}.substr(kPrefix.size());
    const auto at = std::ranges::lower_bound(given_at, std::pair{name, std::size_t{0}});
    if (at != given_at.end() && at->first == name)
      metadata.items()[at->second].value = value;
    else
      metadata.items().push_back({std::string{name}, value});  // the record's keys differ
  }
  return metadata;
}

std::string collector_of(const Json& record, const Json& metadata, const Json& device_id) {
  const Json& collectors = telemetry_fields().collectors;
  const Json& backend = member(record.contains("backend") ? record : metadata, "backend");
  if (backend.is_string()) {
    std::string name = lower(backend.get<std::string>());
    name.erase(0, name.find_first_not_of(" \t\n\r\v\f"));
    name.erase(name.find_last_not_of(" \t\n\r\v\f") + 1);
    if (const auto collector = text_of(collectors.at("of_backend"), name)) return *collector;
  }
  for (const auto& [name, collector] : collectors.at("beside").items())
    if (record.contains(name)) return collector.at(device_id == -1 ? "host" : "device").text();
  return collectors.at("default").text();
}

// At least 0. A float if it does not fit in 64 bits, which the check of version 2 rejects.
Json difference(const Json& all, const Json& part) {
  const bool integers = is_integer(all) && is_integer(part);
  if (integers ? all.get<std::int64_t>() <= part.get<std::int64_t>()
               : all.get<double>() <= part.get<double>())
    return 0;
  std::int64_t rest = 0;
  const bool fits =
      integers && !__builtin_sub_overflow(all.get<std::int64_t>(), part.get<std::int64_t>(), &rest);
  return fits ? Json(rest) : Json(all.get<double>() - part.get<double>());
}

// The default of a field that the record does not have. Fields that the default refers to are set:
// they come earlier in the table, or are in the record.
Json default_of(const TelemetryField& field, const Json& event, const Json& record) {
  if (!field.default_as.empty()) return event.at(field.default_as);
  if (!field.default_difference.empty()) {
    const Json& all = event.at(field.default_difference[0]);
    return all.is_null() ? all : difference(all, event.at(field.default_difference[1]));
  }
  for (const auto& [name, value] : field.default_beside.items())
    if (record.contains(name)) return value;
  return field.default_value;
}

}  // namespace

Json version_2_of(const Json& record) {
  const TelemetryFields& table = telemetry_fields();
  const Json metadata = metadata_of(record);
  Json event{{kVersionKey, table.version}};
  std::vector<const TelemetryField*> unnamed;
  for (const TelemetryField& field : table.fields) {
    Found value = first_of(record, field.version_1);
    if (!value) value = first_of(metadata, field.in_metadata);
    if (!value && field.optional) continue;
    if (!value) unnamed.push_back(&field);
    event[field.key] = value ? *std::move(value) : field.default_value;
  }
  bool has_collector = true;
  for (const TelemetryField* const field : unnamed) {
    if (field->key == "timestamp_ns")
      throw TelemetryProblem{"missing", "timestamp is missing: seconds since 1970"};
    if (field->key == "collector")
      has_collector = false;
    else
      event[field->key] = default_of(*field, event, record);
  }
  if (!has_collector) event["collector"] = collector_of(record, metadata, event.at("device_id"));
  // Version 2 has fields for the rank, so its keys leave the metadata.
  Json& kept = event["metadata"] = Json::object();
  for (const auto& [key, value] : metadata.items()) {
    const auto index = table.find(key);
    if (!index || !table.fields[*index].optional)
      kept.items().push_back({key, value});  // keys differ
  }
  return event;
}

bool is_later_version(const Json& version) {
  return is_integer(version) &&
         telemetry_fields().later_versions.contains(std::to_string(version.get<std::int64_t>()));
}

Json version_2_of_later(const Json& record) {
  const std::string key_of_session = "session_id";
  if (!record.contains(key_of_session))
    throw TelemetryProblem{"missing", key_of_session + " is missing"};
  const Json& session = record.at(key_of_session);
  if (!session.is_string() || is_blank(session.text()))
    throw TelemetryProblem{session.is_string() ? "value" : "type",
                           key_of_session + " is not a text with characters"};
  const TelemetryFields& table = telemetry_fields();
  const std::string version =
      std::to_string(record.at(std::string{kVersionKey}).get<std::int64_t>());
  const Json& zeros = table.later_versions.at(version).at("null_as_zero");
  Json converted{{kVersionKey, table.version}};
  const auto counts_as_zero = [&zeros](const std::string& key) {
    return std::ranges::any_of(zeros, [&](const auto& name) { return name.text() == key; });
  };
  for (const auto& [key, value] : record.items()) {
    if (key == key_of_session || key == kVersionKey) continue;
    const bool is_zero = value.is_null() && counts_as_zero(key);
    if (key == "metadata" && value.is_object() && !value.contains(key_of_session)) {
      Json& metadata = converted[key] = Json{{key_of_session, session}};
      for (const auto& [name, of] : value.items()) metadata.items().push_back({name, of});
    } else {
      converted.items().push_back({key, is_zero ? Json(0) : value});  // keys differ
    }
  }
  return converted;
}

bool has_size(const Json& record) {
  const TelemetryFields& table = telemetry_fields();
  const auto& names = table.fields[*table.find("allocator_allocated_bytes")].version_1;
  return std::ranges::any_of(names, [&](const auto& name) { return record.contains(name.first); });
}

}  // namespace oomrec::tools::formats
