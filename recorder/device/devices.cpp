// Drivers, devices and their figures.
#include "recorder/device/devices.h"

#include <cstring>

#include "common/system/files.h"

namespace oomrec::recorder {

using session::Device;
using session::Driver;
using session::g_session;

namespace {

constexpr std::uint64_t kBetweenLooksNs = 100'000'000;

struct Devices {
  system::SpinLock lock;
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
  const system::SpinGuard guard(g_devices.lock);
  if (!guard) return false;
  if (!g_devices.ready.load(std::memory_order_relaxed) && g_session.open_devices(hook))
    g_devices.ready.store(true, std::memory_order_release);
  return g_devices.ready.load(std::memory_order_relaxed);
}

void forget_devices(InHook hook) noexcept {
  g_devices.lock.unlock();
  g_devices.ready.store(false, std::memory_order_relaxed);
  g_state.device_blocks.forget(hook);
  forget_near_devices(hook);
}

bool meet_driver(InHook hook, Vendor) noexcept { return devices_ready(hook); }

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
  const system::SpinGuard guard(g_devices.lock);
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

bool wants_look(InHook, std::uint32_t device, bool refused) noexcept {
  if (!is_known_device(device) || system::is_sandboxed()) return false;
  const std::uint64_t last = g_session.devices.at(device).look_ns.load(std::memory_order_relaxed);
  return refused || system::coarse_ns() >= last + kBetweenLooksNs || expects_full(device);
}

bool wants_pool_look(InHook, std::uint32_t device) noexcept {
  if (!is_known_device(device) || system::is_sandboxed()) return false;
  const Device& known = g_session.devices.at(device);
  return known.limit_bytes != 0 ||
         Device::at_least_zero(known.pool_used_bytes) > known.pool_reserved_bytes;
}

void on_device_look(InHook hook, std::uint32_t device, std::uint64_t free_bytes,
                    std::uint64_t total_bytes) noexcept {
  if (!is_known_device(device)) return;
  Device& known = g_session.devices.at(device);
  known.free_bytes.store(free_bytes, std::memory_order_relaxed);
  known.total_bytes.store(total_bytes, std::memory_order_relaxed);
  known.look_counted_bytes.store(known.counted_bytes(), std::memory_order_relaxed);
  known.look_ns.store(system::coarse_ns(), std::memory_order_release);
  watch_device(hook, device);
}

session::DeviceEvidence device_evidence(std::uint32_t device, std::uint64_t now_ns) noexcept {
  session::DeviceEvidence seen{};
  if (!is_known_device(device)) return seen;
  const Device& known = g_session.devices.at(device);
  seen.device = device;
  if (const std::uint64_t look = known.look_ns; look != 0 && look <= now_ns)
    seen.look_age_ms = static_cast<std::uint32_t>((now_ns - look) / 1'000'000);
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
  if (!g_devices.ready.load(std::memory_order_acquire)) return;
  const auto write = [&](session::DevicePoint& point) noexcept {
    std::atomic_ref time(point.time_ns);
    time.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    const std::uint32_t known = g_session.devices.size();
    for (std::uint32_t device = 1; device < known && device <= session::kPointDevices; ++device) {
      const session::DeviceEvidence seen = device_evidence(device, time_ns);
      point.devices[device - 1] = {seen.counted_bytes,
                                   seen.total_bytes - seen.free_bytes,
                                   seen.total_bytes,
                                   seen.torch_allocated_bytes,
                                   seen.torch_reserved_bytes,
                                   seen.look_age_ms,
                                   1};
    }
    time.store(time_ns, std::memory_order_release);
  };
  if (entry != 0) return write(g_session.device_points.at(entry));
  g_session.device_points.append(hook, entry, write);
}

}  // namespace oomrec::recorder
