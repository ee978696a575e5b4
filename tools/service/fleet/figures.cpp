#include "tools/service/fleet/figures.h"

#include <algorithm>

namespace oomrec::tools::service {

void Gauges::add(const Gauges& other) {
  for (const auto& [space, bytes] : other.spaces) {
    SpaceBytes& ours = spaces[space];
    ours.live += bytes.live;
    ours.peak = std::max(ours.peak, bytes.peak);
  }
  rss_bytes += other.rss_bytes;
  for (const auto& [name, bytes] : other.devices) {
    DeviceBytes& ours = devices[name];
    ours.used = std::max(ours.used, bytes.used);
    ours.total = std::max(ours.total, bytes.total);
  }
  for (const auto& [kind, bytes] : other.limits) {
    const auto [at, is_new] = limits.emplace(kind, bytes);
    if (!is_new) at->second = std::min(at->second, bytes);
  }
  if (other.nearest && (!nearest || other.nearest->headroom_ratio() < nearest->headroom_ratio()))
    nearest = other.nearest;
}

}  // namespace oomrec::tools::service
