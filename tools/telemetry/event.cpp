#include "tools/telemetry/event.h"

#include <map>
#include <string_view>
#include <variant>

#include "tools/telemetry/fields.h"
#include "tools/telemetry/version_1.h"

namespace oomrec::tools {
namespace {

using Event = TelemetryEvent;
using Slot = std::variant<std::int64_t Event::*, std::optional<std::int64_t> Event::*,
                          std::string Event::*, std::optional<std::string> Event::*, Json Event::*>;

// Where a field's value is.
const Slot& slot_of(const TelemetryField& field) {
  using Number = std::optional<std::int64_t> Event::*;
  using Words = std::optional<std::string> Event::*;
  static const std::map<std::string, Slot, std::less<>> kSlots = {
      {"timestamp_ns", &Event::timestamp_ns},
      {"event_type", &Event::event_type},
      {"collector", &Event::collector},
      {"sampling_interval_ms", &Event::sampling_interval_ms},
      {"pid", &Event::pid},
      {"host", &Event::host},
      {"device_id", &Event::device_id},
      {"allocator_allocated_bytes", &Event::allocated_bytes},
      {"allocator_reserved_bytes", &Event::reserved_bytes},
      {"allocator_active_bytes", &Event::active_bytes},
      {"allocator_inactive_bytes", &Event::inactive_bytes},
      {"allocator_change_bytes", &Event::change_bytes},
      {"device_used_bytes", &Event::used_bytes},
      {"device_free_bytes", &Event::free_bytes},
      {"device_total_bytes", &Event::total_bytes},
      {"context", &Event::context},
      {"metadata", &Event::metadata},
      {"job_id", static_cast<Words>(&Event::job_id)},
      {"rank", static_cast<Number>(&Event::rank)},
      {"local_rank", static_cast<Number>(&Event::local_rank)},
      {"world_size", static_cast<Number>(&Event::world_size)},
  };
  return kSlots.at(field.key);
}

template <class T>
void put(const Json& value, T& slot) {
  slot = value.get<T>();
}
template <class T>
void put(const Json& value, std::optional<T>& slot) {
  if (!value.is_null()) slot = value.get<T>();
}

template <class T>
Json written(const T& slot) {
  return slot;
}
template <class T>
Json written(const std::optional<T>& slot) {
  return slot ? Json(*slot) : Json(nullptr);
}

}  // namespace

Json event_json(const TelemetryEvent& event) {
  Json record{{kVersionKey, telemetry_fields().version}};
  for (const TelemetryField& field : telemetry_fields().fields) {
    Json value = std::visit([&](auto slot) { return written(event.*slot); }, slot_of(field));
    if (!field.optional || !value.is_null()) record[field.key] = std::move(value);
  }
  return record;
}

std::vector<std::string> event_columns() {
  std::vector<std::string> columns{std::string{kVersionKey}};
  for (const TelemetryField& field : telemetry_fields().fields) columns.push_back(field.key);
  return columns;
}

TelemetryEvent event_of(const Json& record) {
  if (!record.is_object()) throw TelemetryProblem{"object", "it is no object"};
  const bool is_version_1 = !record.contains(kVersionKey);
  if (!is_version_1) check_version(member(record, kVersionKey));
  const Json& of_version_2 = is_version_1 ? version_2_of(record) : record;
  check_record(of_version_2);
  TelemetryEvent event;
  for (const TelemetryField& field : telemetry_fields().fields)
    if (const auto at = of_version_2.find(field.key); at != of_version_2.end())
      std::visit([&](auto slot) { put(*at, event.*slot); }, slot_of(field));
  return event;
}

}  // namespace oomrec::tools
