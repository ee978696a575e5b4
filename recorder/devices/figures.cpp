#include "recorder/devices/figures.h"

#include <atomic>

#include "recorder/devices/registry.h"
#include "recorder/session/reuse.h"

namespace oomrec::recorder {

using session::Device;
using session::g_session;

session::DeviceEvidence device_evidence(std::uint32_t device, std::uint64_t now_ns) noexcept {
  session::DeviceEvidence seen{};
  if (!is_known_device(device)) return seen;
  const Device& known = g_session.devices.at(device);
  seen.device = device;
  if (const std::uint64_t look = known.polled_ns; look != 0 && look <= now_ns)
    seen.polled_age_ms = static_cast<std::uint32_t>((now_ns - look) / 1'000'000);
  seen.total_bytes = known.total_bytes;
  seen.free_bytes = seen.total_bytes - known.used_bytes();
  seen.counted_bytes = known.counted_bytes();
  seen.limit_bytes = known.limit_bytes;
  seen.managed_bytes = Device::at_least_zero(known.managed_bytes);
  seen.pool_used_bytes = Device::at_least_zero(known.pool_used_bytes);
  seen.pool_reserved_bytes = known.pool_reserved_bytes;
  seen.torch_allocated_bytes = known.torch_allocated_bytes;
  seen.torch_reserved_bytes = known.torch_reserved_bytes;
  seen.torch_largest_free_bytes = session::kUnlimited;
  return seen;
}

void write_device_point(InHook hook, std::uint64_t time_ns, std::uint32_t& entry) noexcept {
  if (!has_devices()) return;
  const auto write = [&](session::DevicePoint& point) noexcept {
    session::rewrite(std::atomic_ref(point.time_ns), time_ns, [&]() noexcept {
      const std::uint32_t known = g_session.devices.size();
      for (std::uint32_t device = 1; device < known && device <= session::kPointDevices; ++device) {
        const session::DeviceEvidence seen = device_evidence(device, time_ns);
        point.devices[device - 1] = {seen.counted_bytes,
                                     seen.total_bytes - seen.free_bytes,
                                     seen.total_bytes,
                                     seen.torch_allocated_bytes,
                                     seen.torch_reserved_bytes,
                                     seen.polled_age_ms,
                                     1};
      }
    });
  };
  if (entry != 0) return write(g_session.device_points.at(entry));
  g_session.device_points.append(hook, entry, write);
}

}  // namespace oomrec::recorder
