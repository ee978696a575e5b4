#include "tools/recording/reading/timeline.h"

#include <algorithm>
#include <unordered_map>

#include "tools/recording/reading/devices.h"

namespace oomrec::tools::recording {
namespace {

using session::TableId;

template <class T>
void sort_by_time(std::vector<T>& rows) {
  std::ranges::stable_sort(rows, {}, &T::time_ns);
}

std::vector<DeviceMoment> devices_at(const session::DevicePoint& point) {
  std::vector<DeviceMoment> devices;
  for (std::uint32_t i = 0; i < session::kPointDevices; ++i) {
    const auto& device = point.devices[i];
    if (device.known == 0) continue;
    devices.push_back({i + 1, device.counted_bytes, device.used_bytes, device.total_bytes,
                       device.torch_allocated_bytes, device.torch_reserved_bytes});
  }
  return devices;
}

std::unordered_map<std::uint64_t, std::vector<DeviceMoment>> devices_by_time(
    const session::View& view) {
  std::unordered_map<std::uint64_t, std::vector<DeviceMoment>> by_time;
  for (const auto& point : session::entries<session::DevicePoint>(view, TableId::device_points))
    if (point.time_ns != 0) by_time[point.time_ns] = devices_at(point);
  return by_time;
}

Moment last_moment_of(const Recording& recording) {
  Moment end;
  end.time_ns = recording.end_ns();
  end.rss_bytes = recording.header().health.rss_bytes;
  for (std::size_t i = 0; i < kSpaceCount; ++i)
    end.live_bytes[i] = recording.totals(static_cast<Space>(i)).live_bytes;
  for (const DeviceFigures& device : devices_of(recording, 0)) {
    DeviceMoment now;
    now.device = device.entry;
    now.counted_bytes = device.held_bytes;
    if (device.driver_sample) {
      now.used_bytes = device.driver_sample->total_bytes - device.driver_sample->free_bytes;
      now.total_bytes = device.driver_sample->total_bytes;
    }
    if (device.torch) {
      now.torch_allocated_bytes = device.torch->allocated_bytes;
      now.torch_reserved_bytes = device.torch->reserved_bytes;
    }
    end.devices.push_back(now);
  }
  return end;
}

std::vector<Moment> moments_of(const Recording& recording) {
  const session::View& view = recording.view();
  auto devices = devices_by_time(view);
  Moment end = last_moment_of(recording);
  std::vector<Moment> moments;
  for (const auto& point : session::entries<session::Point>(view, TableId::points)) {
    // A point of the last tick would duplicate the end.
    if (point.time_ns == 0 || point.time_ns >= end.time_ns) {
      continue;
    }
    Moment moment;
    moment.time_ns = point.time_ns;
    moment.rss_bytes = point.rss_bytes;
    std::copy_n(point.live_bytes, kSpaceCount, moment.live_bytes.begin());
    if (const auto found = devices.find(point.time_ns); found != devices.end())
      moment.devices = std::move(found->second);
    moments.push_back(std::move(moment));
  }
  sort_by_time(moments);
  moments.push_back(std::move(end));
  return moments;
}

std::vector<TimeMark> marks_of(const Recording& recording) {
  std::vector<TimeMark> marks;
  for (const auto& mark : session::entries<session::Mark>(recording.view(), TableId::marks))
    if (mark.time_ns != 0) marks.push_back({mark.time_ns, recording.text(mark.text), mark.thread});
  sort_by_time(marks);
  return marks;
}

std::vector<FailureMoment> failures_of(const session::View& view) {
  std::vector<FailureMoment> failures;
  session::Failure failure{};
  for (std::uint64_t i = 1; i < view.count(TableId::failures); ++i)
    if (view.read(TableId::failures, i, failure) && (failure.flags & session::kFailureProbe) == 0)
      failures.push_back({failure.time_ns, static_cast<std::uint32_t>(i)});
  sort_by_time(failures);
  return failures;
}

std::vector<LimitLine> limits_of(const Recording& recording) {
  const session::Header& header = recording.header();
  std::vector<LimitLine> limits;
  const auto add = [&](std::string name, std::uint64_t bytes, std::uint32_t device = 0) {
    if (bytes != 0 && bytes != session::kUnlimited)
      limits.push_back({std::move(name), bytes, device});
  };
  add("--limit", header.soft_limit_bytes);
  const std::uint64_t sampled_as = header.health.rlimit_as_bytes;
  add("RLIMIT_AS", sampled_as != 0 ? sampled_as : header.limit_as_bytes);
  add("cgroup", header.health.cgroup_limit_bytes);
  add("RAM", header.ram_bytes);
  for (const DeviceFigures& device : devices_of(recording, 0))
    add("--limit-gpu " + device.label, device.limit_bytes, device.entry);
  return limits;
}

}  // namespace

Timeline timeline_of(const Recording& recording) {
  return {moments_of(recording), marks_of(recording), failures_of(recording.view()),
          limits_of(recording), recording.header().dropped_marks};
}

}  // namespace oomrec::tools::recording
