#include "tools/findings/leaks/severity.h"

#include <algorithm>
#include <array>

namespace oomrec::tools::findings {
namespace {

struct Grade {
  std::string_view word;
  double seconds, bytes;  // a limit is reached within this time, or this much has leaked
};

constexpr double kMiB = 1024 * 1024;
constexpr std::array<Grade, 4> kGrades = {{{"critical", 3600, 1024 * kMiB},
                                           {"high", 24 * 3600, 100 * kMiB},
                                           {"medium", 0, 10 * kMiB},
                                           {"low", 0, 0}}};

// The bytes that count against the limit at the end. Nothing for RLIMIT_AS, whose address space is
// used by more than the recording counts.
std::optional<std::uint64_t> used_of(const recording::LimitLine& limit,
                                     const recording::Moment& end) {
  if (limit.device != 0) {
    const auto device = std::find_if(
        end.devices.begin(), end.devices.end(),
        [&](const recording::DeviceMoment& one) { return one.device == limit.device; });
    return device != end.devices.end() ? std::optional{device->counted_bytes} : std::nullopt;
  }
  if (limit.name == "--limit") {
    return end.live_bytes[static_cast<std::size_t>(Space::heap)] +
           end.live_bytes[static_cast<std::size_t>(Space::map)];
  }
  if (limit.name == "cgroup" || limit.name == "RAM") return end.rss_bytes;
  return std::nullopt;
}

double rate_of(const Leaks& leaks, const recording::LimitLine& limit,
               const recording::Recording& recording) {
  if (limit.device == 0) {
    double rate = 0;
    for (const Leak& leak : leaks.leaks)
      if (is_on_host(leak.space)) rate += leak.growth.bytes_per_second;
    return rate;
  }
  for (const DeviceGrowth& device : leaks.devices)
    if (device.device == recording::device_label(recording, limit.device))
      return device.growth.bytes_per_second;
  return 0;
}

}  // namespace

std::optional<Reach> first_reached(const Leaks& leaks, const recording::Recording& recording,
                                   const recording::Timeline& timeline) {
  std::optional<Reach> first;
  if (timeline.moments.empty()) return first;
  for (const recording::LimitLine& limit : timeline.limits) {
    const auto used = used_of(limit, timeline.moments.back());
    const double rate = rate_of(leaks, limit, recording);
    if (!used || rate <= 0) continue;
    const std::uint64_t left = limit.bytes - std::min(limit.bytes, *used);
    const double seconds = static_cast<double>(left) / rate;
    if (!first || seconds < first->seconds) first = {limit.name, limit.bytes, seconds};
  }
  return first;
}

std::string_view severity_of(const Leaks& leaks, const std::optional<Reach>& reach) {
  if (!leaks.detected()) return "none";
  const auto fits = [&](const Grade& grade) {
    return leaks.bytes() >= grade.bytes || (reach && reach->seconds < grade.seconds);
  };
  return std::find_if(kGrades.begin(), kGrades.end(), fits)->word;
}

}  // namespace oomrec::tools::findings
