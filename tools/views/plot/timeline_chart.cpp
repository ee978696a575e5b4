#include "tools/views/plot/timeline_chart.h"

#include <algorithm>

#include "tools/recording/reading/devices.h"

namespace oomrec::tools::views {
namespace {

bool is_of_host(Space space) {
  return space == Space::heap || space == Space::map || space == Space::cuda_host ||
         space == Space::hip_host;
}

// The part that all charts of a time line share: begin, end and events.
Chart empty_chart(const recording::Timeline& timeline, const recording::Recording& recording) {
  Chart chart;
  chart.begin_ns = recording.header().start_monotonic_ns;
  chart.end_ns = std::max(chart.begin_ns, timeline.moments.back().time_ns);
  for (const recording::FailureMoment& moment : timeline.failures)
    chart.events.push_back({moment.time_ns, kFailureSign, Colour::red});
  for (const recording::TimeMark& mark : timeline.marks)
    chart.events.push_back({mark.time_ns, kMarkSign, Colour::cyan});
  return chart;
}

void add_limits(Chart& chart, const recording::Timeline& timeline, std::uint32_t device) {
  for (const recording::LimitLine& limit : timeline.limits)
    if (limit.device == device) chart.limits.push_back({limit.name, limit.bytes});
}

}  // namespace

Chart host_chart(const recording::Timeline& timeline, const recording::Recording& recording) {
  Chart chart = empty_chart(timeline, recording);
  Curve rss{"RSS", Colour::cyan, true, {}};
  Curve live{"live", Colour::yellow, false, {}};
  for (const recording::Moment& moment : timeline.moments) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kSpaceCount; ++i)
      if (is_of_host(static_cast<Space>(i))) sum += moment.live_bytes[i];
    live.points.emplace_back(moment.time_ns, sum);
    if (moment.rss_bytes != 0) rss.points.emplace_back(moment.time_ns, moment.rss_bytes);
  }
  chart.curves = {std::move(rss), std::move(live)};
  add_limits(chart, timeline, 0);
  return chart;
}

Chart device_chart(const recording::Timeline& timeline, const recording::Recording& recording,
                   std::uint32_t device) {
  Chart chart = empty_chart(timeline, recording);
  Curve used{"all processes", Colour::cyan, true, {}};
  Curve counted{"this process", Colour::yellow, false, {}};
  std::uint64_t total_bytes = 0;
  for (const recording::Moment& moment : timeline.moments) {
    for (const recording::DeviceMoment& figures : moment.devices) {
      if (figures.device != device) continue;
      counted.points.emplace_back(moment.time_ns, figures.counted_bytes);
      if (figures.total_bytes != 0) used.points.emplace_back(moment.time_ns, figures.used_bytes);
      total_bytes = std::max(total_bytes, figures.total_bytes);
    }
  }
  chart.curves = {std::move(used), std::move(counted)};
  add_limits(chart, timeline, device);
  if (total_bytes != 0) chart.limits.push_back({"device", total_bytes});
  return chart;
}

std::vector<std::uint32_t> devices_in(const recording::Timeline& timeline) {
  std::vector<std::uint32_t> devices;
  for (const recording::Moment& moment : timeline.moments)
    for (const recording::DeviceMoment& device : moment.devices)
      if (std::find(devices.begin(), devices.end(), device.device) == devices.end())
        devices.push_back(device.device);
  return devices;
}

}  // namespace oomrec::tools::views
