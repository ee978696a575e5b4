// The keys of TelemetryEvent are a table: it writes, it reads, and it refuses.
#include "tools/formats/telemetry/event.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <variant>

#include "tools/base/text.h"
#include "tools/formats/telemetry/version_1.h"

namespace oomrec::tools::formats {
namespace {

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::min();

// Where a key's value is; an optional one is null, or, of a key that is not required, absent.
using Slot =
    std::variant<std::int64_t TelemetryEvent::*, std::optional<std::int64_t> TelemetryEvent::*,
                 std::string TelemetryEvent::*, std::optional<std::string> TelemetryEvent::*,
                 Json TelemetryEvent::*>;

struct Field {
  std::string_view key;
  Slot slot;
  std::int64_t least = 0;  // of a number
  bool required = true;
};

constexpr std::string_view kVersionKey = "schema_version";

const std::array<Field, 21>& fields() {
  using Event = TelemetryEvent;
  using Number = std::optional<std::int64_t> Event::*;
  using Words = std::optional<std::string> Event::*;
  static const std::array<Field, 21> kFields = {{
      {"timestamp_ns", &Event::timestamp_ns},
      {"event_type", &Event::event_type},
      {"collector", &Event::collector},
      {"sampling_interval_ms", &Event::sampling_interval_ms},
      {"pid", &Event::pid, -1},
      {"host", &Event::host},
      {"device_id", &Event::device_id, -1},
      {"allocator_allocated_bytes", &Event::allocated_bytes},
      {"allocator_reserved_bytes", &Event::reserved_bytes},
      {"allocator_active_bytes", &Event::active_bytes},
      {"allocator_inactive_bytes", &Event::inactive_bytes},
      {"allocator_change_bytes", &Event::change_bytes, kAny},
      {"device_used_bytes", &Event::used_bytes},
      {"device_free_bytes", &Event::free_bytes},
      {"device_total_bytes", &Event::total_bytes},
      {"context", &Event::context},
      {"metadata", &Event::metadata},
      {"job_id", static_cast<Words>(&Event::job_id), 0, false},
      {"rank", static_cast<Number>(&Event::rank), 0, false},
      {"local_rank", static_cast<Number>(&Event::local_rank), 0, false},
      {"world_size", static_cast<Number>(&Event::world_size), 1, false},
  }};
  return kFields;
}

template <class... Cases>
struct Either : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Either(Cases...) -> Either<Cases...>;

[[noreturn]] void refuse(std::string_view key, std::string_view why) {
  throw std::invalid_argument{fmt::format("{} {}", key, why)};
}

// A table's writer may have made 7 to 7.0, where the column has empty cells as well.
std::optional<std::int64_t> number_in_cell(const std::string& text) {
  std::int64_t whole = 0;
  const char* const end = text.data() + text.size();
  if (const auto read = std::from_chars(text.data(), end, whole);
      read.ec == std::errc{} && read.ptr == end)
    return whole;
  double value = 0;
  const auto read = std::from_chars(text.data(), end, value);
  constexpr double kExact = 9007199254740992.0;  // 2^53
  const bool is_whole = read.ec == std::errc{} && read.ptr == end && std::fabs(value) <= kExact &&
                        std::trunc(value) == value;
  return is_whole ? std::optional{static_cast<std::int64_t>(value)} : std::nullopt;
}

// A cell as the value that its column has.
Json value_of_cell(const Field& field, const Json& cell) {
  if (!cell.is_string()) return cell;
  const auto& text = cell.get_ref<const std::string&>();
  const bool is_metadata = std::holds_alternative<Json TelemetryEvent::*>(field.slot);
  if (is_metadata) return text.empty() ? Json::object() : Json::parse(text, nullptr, false);
  const bool is_text =
      std::holds_alternative<std::string TelemetryEvent::*>(field.slot) ||
      std::holds_alternative<std::optional<std::string> TelemetryEvent::*>(field.slot);
  if (is_text)
    return text.empty() && !std::holds_alternative<std::string TelemetryEvent::*>(field.slot)
               ? Json(nullptr)
               : cell;
  if (text.empty()) return nullptr;
  const auto number = number_in_cell(text);
  return number ? Json(*number) : cell;
}

std::int64_t whole_number(const Field& field, const Json& value) {
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() &&
       value.get<std::uint64_t>() >
           static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())))
    refuse(field.key, fmt::format("is no integer: {}", clip(json_text(value), 60)));
  const auto number = value.get<std::int64_t>();
  if (number < field.least)
    refuse(field.key, fmt::format("is {}, less than {}", number, field.least));
  return number;
}

std::string words(const Field& field, const Json& value) {
  if (!value.is_string())
    refuse(field.key, fmt::format("is no text: {}", clip(json_text(value), 60)));
  return value.get<std::string>();
}

void read(const Field& field, const Json& value, TelemetryEvent& event) {
  const bool nullable = field.required || field.key == "job_id";
  std::visit(
      Either{[&](std::int64_t TelemetryEvent::*slot) { event.*slot = whole_number(field, value); },
             [&](std::optional<std::int64_t> TelemetryEvent::*slot) {
               if (!value.is_null() || !nullable) event.*slot = whole_number(field, value);
             },
             [&](std::string TelemetryEvent::*slot) { event.*slot = words(field, value); },
             [&](std::optional<std::string> TelemetryEvent::*slot) {
               if (!value.is_null()) event.*slot = words(field, value);
             },
             [&](Json TelemetryEvent::*slot) {
               if (!value.is_object()) refuse(field.key, "is no object");
               event.*slot = value;
             }},
      field.slot);
}

Json written(const Field& field, const TelemetryEvent& event) {
  return std::visit(Either{[&](std::int64_t TelemetryEvent::*slot) { return Json(event.*slot); },
                           [&](std::optional<std::int64_t> TelemetryEvent::*slot) {
                             return event.*slot ? Json(*(event.*slot)) : Json(nullptr);
                           },
                           [&](std::string TelemetryEvent::*slot) { return Json(event.*slot); },
                           [&](std::optional<std::string> TelemetryEvent::*slot) {
                             return event.*slot ? Json(*(event.*slot)) : Json(nullptr);
                           },
                           [&](Json TelemetryEvent::*slot) { return event.*slot; }},
                    field.slot);
}

TelemetryEvent event_of_version_2(const Json& record, bool cells) {
  TelemetryEvent event;
  for (const auto& member : record.items()) {
    const std::string& key = member.key();
    const bool known =
        key == kVersionKey || std::any_of(fields().begin(), fields().end(),
                                          [&](const Field& field) { return field.key == key; });
    if (!known) refuse(printable(key), "is no key of version 2");
  }
  for (const Field& field : fields()) {
    const auto at = record.find(std::string{field.key});
    if (at == record.end()) {
      if (field.required) refuse(field.key, "is missing");
      continue;
    }
    const Json value = cells ? value_of_cell(field, *at) : *at;
    if (cells && !field.required && value.is_null()) continue;  // a table has every column
    read(field, value, event);
  }
  return event;
}

}  // namespace

Json event_json(const TelemetryEvent& event) {
  Json record{{kVersionKey, kTelemetryVersion}};
  for (const Field& field : fields()) {
    Json value = written(field, event);
    if (field.required || !value.is_null()) record[std::string{field.key}] = std::move(value);
  }
  return record;
}

std::vector<std::string> event_columns() {
  std::vector<std::string> columns{std::string{kVersionKey}};
  for (const Field& field : fields()) columns.emplace_back(field.key);
  return columns;
}

std::string contradiction(const TelemetryEvent& event) {
  if (event.total_bytes && event.used_bytes > *event.total_bytes)
    return "device_used_bytes is more than device_total_bytes";
  if (event.total_bytes && event.free_bytes && *event.free_bytes > *event.total_bytes)
    return "device_free_bytes is more than device_total_bytes";
  const std::int64_t world = event.world_size.value_or(std::numeric_limits<std::int64_t>::max());
  if (event.rank && *event.rank >= world) return "rank is not less than world_size";
  if (event.local_rank && *event.local_rank >= world)
    return "local_rank is not less than world_size";
  return {};
}

TelemetryEvent event_of(const Json& record, bool cells) {
  if (!record.is_object()) throw std::invalid_argument{"it is no object"};
  const Json& version = member(record, kVersionKey);
  if (!record.contains(std::string{kVersionKey}) ||
      (cells && version.is_string() && version.get_ref<const std::string&>().empty()))
    return event_of_version_1(record);
  const Json number = cells && version.is_string()
                          ? Json(number_in_cell(version.get<std::string>()).value_or(-1))
                          : version;
  if (!number.is_number_integer() || number.get<std::int64_t>() != kTelemetryVersion)
    refuse(kVersionKey,
           fmt::format("is {}; 2 is read, and 1, which has none", clip(json_text(version), 60)));
  TelemetryEvent event = event_of_version_2(record, cells);
  if (const std::string wrong = contradiction(event); !wrong.empty())
    throw std::invalid_argument{wrong};
  return event;
}

}  // namespace oomrec::tools::formats
