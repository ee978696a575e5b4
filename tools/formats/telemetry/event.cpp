#include "tools/formats/telemetry/event.h"

#include <algorithm>
#include <map>
#include <variant>

#include "tools/formats/telemetry/fields.h"
#include "tools/formats/telemetry/other_versions.h"

namespace oomrec::tools::formats {
namespace {

using Event = TelemetryEvent;
using Slot = std::variant<std::int64_t Event::*, std::optional<std::int64_t> Event::*,
                          std::string Event::*, std::optional<std::string> Event::*, Json Event::*>;

// The member of each field, in the order of the table.
const std::vector<Slot>& slots() {
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
  static const std::vector<Slot> kInOrder = [] {
    std::vector<Slot> in_order;
    for (const TelemetryField& field : telemetry_fields().fields)
      in_order.push_back(kSlots.at(field.key));
    return in_order;
  }();
  return kInOrder;
}

template <class T>
void put(const Json& value, T& slot) {
  slot = value.get<T>();
}
template <class T>
void put(const Json& value, std::optional<T>& slot) {
  if (!value.is_null()) slot = value.get<T>();
}

// GPU Memory Profiler's readers expect a rank in every event: outside a job, rank 0 of 1.
TelemetryEvent with_rank(TelemetryEvent event) {
  if (!event.rank) event.rank = 0;
  if (!event.local_rank) event.local_rank = event.rank;
  // The smallest world that has these ranks.
  if (!event.world_size) event.world_size = std::max(*event.rank, *event.local_rank) + 1;
  return event;
}

}  // namespace

Json event_json(const TelemetryEvent& known) {
  const TelemetryEvent event = with_rank(known);
  const auto& fields = telemetry_fields().fields;
  Json record{{kVersionKey, telemetry_fields().version}};
  for (std::size_t i = 0; i < fields.size(); ++i)
    record[fields[i].key] = std::visit([&](auto slot) { return Json(event.*slot); }, slots()[i]);
  return record;
}

std::vector<std::string> event_columns() {
  std::vector<std::string> columns{std::string{kVersionKey}};
  for (const TelemetryField& field : telemetry_fields().fields) columns.push_back(field.key);
  return columns;
}

TelemetryEvent event_of(const Json& record) {
  if (!record.is_object()) throw TelemetryProblem{"object", "it is not an object"};
  const bool is_version_1 = !record.contains(kVersionKey);
  const bool is_later = !is_version_1 && is_later_version(member(record, kVersionKey));
  if (!is_version_1 && !is_later) check_version(member(record, kVersionKey));
  const Json converted = is_version_1 ? version_2_of(record)
                         : is_later   ? version_2_of_later(record)
                                      : Json();
  const auto values = checked_values(is_version_1 || is_later ? converted : record);
  TelemetryEvent event;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != nullptr)
      std::visit([&](auto slot) { put(*values[i], event.*slot); }, slots()[i]);
  return event;
}

}  // namespace oomrec::tools::formats
