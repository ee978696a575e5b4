#include "tools/telemetry/version_1.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "tools/telemetry/fields.h"
#include "tools/text.h"

namespace oomrec::tools {
namespace {

constexpr std::int64_t kMiB = 1024 * 1024;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

// Nothing: as if the name were not there.
using Found = std::optional<Json>;

[[noreturn]] void refuse_name(std::string_view name, std::string_view wanted, const Json& value) {
  throw TelemetryProblem{"type",
                         fmt::format("{} is no {}: {}", name, wanted, clip(json_text(value), 60))};
}

// One that is no integer of 64 bits stays what it is: the check of version 2 refuses it.
Json whole(double value) {
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  return value >= -kLimit && value < kLimit ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

Json product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result)
             ? Json(static_cast<double>(a) * static_cast<double>(b))
             : Json(result);
}

// No digit of a float is lost: 1.7e9 s times 1e9 is not exact.
Json nanoseconds(const Json& value) {
  if (is_integer(value)) return product(value.get<std::int64_t>(), kNsPerSecond);
  const auto seconds = value.get<double>();
  const Json whole_seconds = whole(seconds);
  if (!is_integer(whole_seconds)) return whole_seconds;
  const Json ns = product(whole_seconds.get<std::int64_t>(), kNsPerSecond);
  const auto rest =
      static_cast<std::int64_t>(std::nearbyint((seconds - std::trunc(seconds)) * 1e9));
  std::int64_t sum = 0;
  if (!is_integer(ns) || __builtin_add_overflow(ns.get<std::int64_t>(), rest, &sum))
    return Json(seconds * 1e9);
  return sum;
}

Json mebibytes(const Json& value) {
  if (is_integer(value)) return product(value.get<std::int64_t>(), kMiB);
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
    std::int64_t number = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return read.ec == std::errc{} ? Json(number) : Json(digits);
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
    if (!is_integer(value)) refuse_name(name, "integer", value);
    return value;
  }
  if (kind.is_text()) {
    const bool usable = value.is_string() && !is_blank(value.get_ref<const std::string&>());
    if (kind.base == "text" && kind.otherwise == "nothing" && !usable) return std::nullopt;
    return value;
  }
  if (!value.is_number() || !std::isfinite(value.get<double>())) refuse_name(name, "number", value);
  if (kind.otherwise == "zero" && value.get<double>() == 0) return std::nullopt;
  if (kind.base == "seconds") return nanoseconds(value);
  return kind.base == "mebibytes" ? mebibytes(value) : bytes(value);
}

Found first_of(const Json& record, const TelemetryField::Names& names) {
  for (const auto& [name, kind] : names)
    if (const auto at = record.find(name); at != record.end())
      if (Found value = converted(name, kind, *at)) return value;
  return std::nullopt;
}

Json metadata_of(const Json& record) {
  const Json& given = member(record, "metadata");
  if (!given.is_null() && !given.is_object()) refuse_name("metadata", "object", given);
  Json metadata = given.is_object() ? given : Json::object();
  constexpr std::string_view kPrefix = "metadata_";
  for (const auto& [key, value] : record.items())
    if (key.starts_with(kPrefix)) metadata[key.substr(kPrefix.size())] = value;
  return metadata;
}

std::string collector_of(const Json& record, const Json& metadata, const Json& device_id) {
  const Json& known = telemetry_fields().collectors;
  const Json& backend = member(record.contains("backend") ? record : metadata, "backend");
  if (backend.is_string()) {
    std::string name = lower(backend.get<std::string>());
    name.erase(0, name.find_first_not_of(" \t\n\r\v\f"));
    name.erase(name.find_last_not_of(" \t\n\r\v\f") + 1);
    if (const auto collector = text_of(known.at("of_backend"), name)) return *collector;
  }
  for (const auto& [name, collector] : known.at("beside").items())
    if (record.contains(name)) return collector.at(device_id == -1 ? "host" : "device");
  return known.at("default");
}

// What stands in a field for which the record has no name.
class Defaults {
 public:
  Defaults(const Json& record, Json& found) : record_(record), found_(found) {}

  Json value_of(const std::string& key) const {
    const auto at = found_.find(key);
    return at != found_.end() ? *at : default_of(*telemetry_fields().find(key));
  }

 private:
  Json default_of(const TelemetryField& field) const {
    if (!field.default_as.empty()) return value_of(field.default_as);
    if (!field.default_difference.empty()) {
      const Json all = value_of(field.default_difference[0]);
      const Json part = value_of(field.default_difference[1]);
      return all.is_null() ? Json() : difference(all, part);
    }
    for (const auto& [name, value] : field.default_beside.items())
      if (record_.contains(name)) return value;
    return field.default_value;
  }

  static Json difference(const Json& all, const Json& part) {
    if (all <= part) return 0;
    std::int64_t rest = 0;
    if (!is_integer(all) || !is_integer(part) ||
        __builtin_sub_overflow(all.get<std::int64_t>(), part.get<std::int64_t>(), &rest))
      return all;  // the check of version 2 refuses it, or the other
    return rest;
  }

  const Json& record_;
  const Json& found_;
};

}  // namespace

Json version_2_of(const Json& record) {
  const TelemetryFields& table = telemetry_fields();
  const Json metadata = metadata_of(record);
  Json found = Json::object();
  for (const TelemetryField& field : table.fields) {
    Found value = first_of(record, field.version_1);
    if (!value) value = first_of(metadata, field.in_metadata);
    if (value) found[field.key] = *std::move(value);
  }
  if (!found.contains("timestamp_ns"))
    throw TelemetryProblem{"missing", "timestamp is missing: seconds since 1970"};
  const Defaults defaults{record, found};
  // A rank has fields of its own in version 2.
  Json& kept = found["metadata"] = Json::object();
  for (const auto& [key, value] : metadata.items()) {
    const TelemetryField* const field = table.find(key);
    if (field == nullptr || !field->optional) kept[key] = value;
  }
  if (!found.contains("collector"))
    found["collector"] = collector_of(record, metadata, defaults.value_of("device_id"));
  Json event{{kVersionKey, table.version}};
  for (const TelemetryField& field : table.fields)
    if (!field.optional || found.contains(field.key))
      event[field.key] = defaults.value_of(field.key);
  return event;
}

bool has_size(const Json& record) {
  const auto& names = telemetry_fields().find("allocator_allocated_bytes")->version_1;
  return std::any_of(names.begin(), names.end(),
                     [&](const auto& name) { return record.contains(name.first); });
}

}  // namespace oomrec::tools
