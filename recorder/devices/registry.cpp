#include "recorder/devices/registry.h"

#include <atomic>
#include <cstring>

#include "common/system/mutex.h"
#include "recorder/session/reuse.h"
#include "recorder/state/callbacks.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using session::Device;
using session::Driver;
using session::g_session;

namespace {

struct Devices {
  system::Mutex lock;
  std::atomic<bool> ready{false};
};
constinit Devices g_devices;

Driver& driver(Vendor vendor) noexcept {
  return g_session.header().drivers[static_cast<std::size_t>(vendor)];
}

// 0: there is none.
std::uint32_t find(Vendor vendor, std::int32_t ordinal) noexcept {
  for (std::uint32_t entry = 1; entry < g_session.devices.size(); ++entry) {
    const Device& device = g_session.devices.at(entry);
    if (device.vendor == static_cast<std::uint8_t>(vendor) && device.ordinal == ordinal)
      return entry;
  }
  return 0;
}

}  // namespace

bool devices_ready(InHook hook) noexcept {
  if (g_devices.ready.load(std::memory_order_acquire)) [[likely]]
    return true;
  if (phase() == Phase::waiting) begin_waiting_session(hook);
  if (phase() != Phase::active) return false;
  const system::MutexGuard guard(g_devices.lock);
  if (!guard) return false;
  if (!g_devices.ready.load(std::memory_order_relaxed) && g_session.open_devices(hook))
    g_devices.ready.store(true, std::memory_order_release);
  return g_devices.ready.load(std::memory_order_relaxed);
}

bool has_devices() noexcept { return g_devices.ready.load(std::memory_order_acquire); }

void reset_devices_after_fork(InHook hook) noexcept {
  g_devices.lock.unlock();
  g_devices.ready.store(false, std::memory_order_relaxed);
  g_state.device_blocks.reset(hook);
}

void on_look_up(InHook hook, Vendor vendor, LookUp way) noexcept {
  if (!devices_ready(hook)) return;
  Driver& known = driver(vendor);
  auto& count = way == LookUp::linked  ? known.linked
                : way == LookUp::dlsym ? known.by_dlsym
                                       : known.by_resolver;
  count.fetch_add(1, std::memory_order_relaxed);
}

void describe_driver(InHook hook, Vendor vendor, std::string_view path, std::uint32_t version,
                     std::uint32_t wrapped) noexcept {
  if (!devices_ready(hook)) return;
  Driver& known = driver(vendor);
  if (wrapped != 0) known.wrapped.store(wrapped, std::memory_order_relaxed);
  if (version != 0) known.version = version;
  if (known.path == 0 && !path.empty()) known.path = g_session.add_string(hook, path);
}

std::uint32_t device_entry(InHook hook, Vendor vendor, std::int32_t ordinal) noexcept {
  return ordinal < 0 || !devices_ready(hook) ? 0 : find(vendor, ordinal);
}

std::uint32_t describe_device(InHook hook, const DeviceIdentity& identity) noexcept {
  if (!devices_ready(hook)) return 0;
  const system::MutexGuard guard(g_devices.lock);
  if (!guard) return 0;
  std::uint32_t entry = find(identity.vendor, identity.ordinal);
  if (entry != 0) return entry;
  g_session.devices.append(hook, entry, [&](Device& device) noexcept {
    device.vendor = static_cast<std::uint8_t>(identity.vendor);
    device.ordinal = identity.ordinal;
    std::memcpy(device.uuid, identity.uuid, sizeof device.uuid);
    std::memcpy(device.name, identity.name, sizeof device.name);
    device.limit_bytes = device_limit(g_state.options.limit_gpu, identity.vendor, identity.ordinal);
  });
  return entry;
}

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
