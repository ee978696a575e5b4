#include "tools/views/export/records.h"

#include "common/text/text.h"
#include "tools/recording/reading/devices.h"

namespace oomrec::tools::views {
namespace {

Json amount_json(const Amount& amount) {
  return {{"bytes", amount.bytes}, {"count", amount.count}};
}

}  // namespace

Json holder_record(const HolderRow& row) {
  // clang-format off
  return {
      {"space", name_of(row.space)},
      {"api", name_of(row.api)},
      {"estimated", row.estimated},
      {"live", amount_json(row.live)},
      {"resident_bytes", row.resident_bytes},
      {"at_peak", amount_json(row.peak)},
      {"allocated", amount_json(row.ever)},
      {"temporary_count", row.temporary},
  };
  // clang-format on
}

Json event_record(const recording::Recording& recording, const EventRow& row) {
  return {
      {"time_ns", row.realtime_ns},
      {"event_type", row.type()},
      {"kind", name_of(row.kind)},
      {"space", name_of(row.space)},
      {"device", text_or_null(recording::device_label(recording, row.device))},
      {"api", name_of(row.api)},
      {"address", row.is_failure() ? Json(nullptr) : Json(row.address)},
      {"bytes", row.bytes},
      {"memory_change", row.change},
      {"memory_allocated", row.allocated},
      {"memory_reserved", row.reserved},
      {"thread", number_or_null(row.tid)},
  };
}

Json moment_record(const recording::Recording& recording, const recording::Moment& moment) {
  Json live = Json::object();
  for (std::size_t i = 0; i < kSpaceCount; ++i)
    if (has_totals(static_cast<Space>(i))) live[std::string{kSpaceNames[i]}] = moment.live_bytes[i];
  Json devices = Json::object();
  for (const recording::DeviceMoment& device : moment.devices) {
    devices[recording::device_label(recording, device.device)] = {
        {"counted_bytes", device.counted_bytes},
        {"used_bytes", device.used_bytes},
        {"total_bytes", device.total_bytes},
        {"torch_allocated_bytes", device.torch_allocated_bytes},
        {"torch_reserved_bytes", device.torch_reserved_bytes},
    };
  }
  return {
      {"time_ns", recording.realtime_of(moment.time_ns)},
      {"rss_bytes", moment.rss_bytes},
      {"live_bytes", std::move(live)},
      {"devices", std::move(devices)},
  };
}

}  // namespace oomrec::tools::views
