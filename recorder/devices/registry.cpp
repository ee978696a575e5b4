#include "recorder/devices/registry.h"

#include <cstring>

#include "common/system/mutex.h"
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

}  // namespace oomrec::recorder
