#include "tools/views/plot/timeline_json.h"

#include "tools/base/text.h"
#include "tools/recording/reading/devices.h"

namespace oomrec::tools::views {
namespace {

// Seconds since 1970, as in events.json.
double timestamp_of(std::uint64_t time_ns, const recording::Recording& recording) {
  const std::uint64_t milliseconds = recording.realtime_of(time_ns) / 1'000'000;
  return static_cast<double>(milliseconds) / 1000;
}

Json device_json(const recording::DeviceMoment& device, const recording::Recording& recording) {
  const bool reported = device.total_bytes != 0;  // by the driver
  return {
      {"device", recording::device_label(recording, device.device)},
      {"counted_bytes", device.counted_bytes},
      {"used_bytes", reported ? Json(device.used_bytes) : Json(nullptr)},
      {"total_bytes", reported ? Json(device.total_bytes) : Json(nullptr)},
      {"torch_allocated_bytes", device.torch_allocated_bytes},
      {"torch_reserved_bytes", device.torch_reserved_bytes},
  };
}

}  // namespace

Json moment_json(const recording::Moment& moment, const recording::Recording& recording) {
  Json live = Json::object();
  for (std::size_t i = 0; i < kSpaceCount; ++i)
    if (const auto space = static_cast<Space>(i); has_totals(space))
      live[std::string{name_of(space)}] = moment.live_bytes[i];
  Json devices = Json::array();
  for (const recording::DeviceMoment& device : moment.devices)
    devices.push_back(device_json(device, recording));
  return {
      {"timestamp", timestamp_of(moment.time_ns, recording)},
      {"rss_bytes", moment.rss_bytes != 0 ? Json(moment.rss_bytes) : Json(nullptr)},
      {"live_bytes", live},
      {"devices", devices},
  };
}

Json limits_json(const recording::Timeline& timeline, const recording::Recording& recording) {
  Json limits = Json::array();
  for (const recording::LimitLine& limit : timeline.limits) {
    limits.push_back({{"name", limit.name},
                      {"bytes", limit.bytes},
                      {"device", text_or_null(recording::device_label(recording, limit.device))}});
  }
  return limits;
}

Json timeline_json(const recording::Timeline& timeline, const recording::Recording& recording) {
  Json moments = Json::array();
  for (const recording::Moment& moment : timeline.moments)
    moments.push_back(moment_json(moment, recording));
  Json marks = Json::array();
  for (const recording::TimeMark& mark : timeline.marks) {
    marks.push_back({{"timestamp", timestamp_of(mark.time_ns, recording)}, {"text", mark.text}});
  }
  Json refusals = Json::array();
  session::Failure failure{};
  for (const recording::FailureMoment& moment : timeline.failures) {
    if (!recording.view().read(session::TableId::failures, moment.failure, failure)) continue;
    refusals.push_back({{"timestamp", timestamp_of(moment.time_ns, recording)},
                        {"api", name_of(static_cast<Api>(failure.api))},
                        {"bytes", failure.bytes}});
  }
  return {
      {"schema_version", 1},
      {"start_timestamp", timestamp_of(recording.header().start_monotonic_ns, recording)},
      {"moments", moments},
      {"marks", marks},
      {"dropped_marks", timeline.dropped_marks},
      {"refusals", refusals},
      {"limits", limits_json(timeline, recording)},
  };
}

}  // namespace oomrec::tools::views
