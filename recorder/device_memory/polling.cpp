#include "recorder/device_memory/polling.h"

#include "common/system/files.h"
#include "recorder/device_memory/accounting.h"
#include "recorder/device_memory/warning.h"
#include "recorder/devices/registry.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using session::Device;
using session::g_session;

namespace {

constexpr std::uint64_t kPollIntervalNs = 100'000'000;

}  // namespace

bool should_poll(InHook, std::uint32_t device, PollAfter after) noexcept {
  if (!is_known_device(device) || system::is_sandboxed()) return false;
  const std::uint64_t last = g_session.devices.at(device).polled_ns.load(std::memory_order_relaxed);
  return after == PollAfter::failure || system::coarse_ns() >= last + kPollIntervalNs ||
         expects_full(device);
}

bool should_poll_pool(InHook, std::uint32_t device) noexcept {
  if (!is_known_device(device) || system::is_sandboxed()) return false;
  const Device& known = g_session.devices.at(device);
  return known.limit_bytes != 0 ||
         Device::at_least_zero(known.pool_used_bytes) > known.pool_reserved_bytes;
}

void on_device_polled(InHook hook, std::uint32_t device, std::uint64_t free_bytes,
                      std::uint64_t total_bytes) noexcept {
  if (!is_known_device(device)) return;
  Device& known = g_session.devices.at(device);
  known.free_bytes.store(free_bytes, std::memory_order_relaxed);
  known.total_bytes.store(total_bytes, std::memory_order_relaxed);
  known.polled_counted_bytes.store(known.counted_bytes(), std::memory_order_relaxed);
  known.polled_ns.store(system::coarse_ns(), std::memory_order_release);
  watch_device(hook, device);
}

using live::DeviceBlock;
using session::g_session;

void on_pool_polled(InHook hook, const DeviceName& pool, std::uint32_t device,
                    std::uint64_t reserved_bytes) noexcept {
  if (phase() == Phase::off || pool.key == 0 || !devices_ready(hook)) return;
  std::uint64_t before = 0;
  const bool known = g_state.device_blocks.change(hook, pool, [&](DeviceBlock& entry) noexcept {
    before = entry.bytes;
    device = entry.device;
    entry.bytes = reserved_bytes;
    return true;
  });
  if (!known) {
    DeviceBlock entry, replaced;
    entry.name = pool;
    entry.device = device;
    entry.bytes = reserved_bytes;
    if (!g_state.device_blocks.insert(hook, entry, replaced)) return drop();
  }
  add_to_pools(device, reserved_bytes - before);
}

void on_pool_end(InHook hook, Api api, const DeviceName& pool) noexcept {
  if (phase() == Phase::off || !devices_ready(hook)) return;
  tally_call(api, 0);
  DeviceBlock entry;
  if (g_state.device_blocks.remove(hook, pool, entry)) add_to_pools(entry.device, -entry.bytes);
}

std::uint32_t device_of_pool(InHook hook, const DeviceName& pool) noexcept {
  DeviceBlock entry;
  if (phase() == Phase::off || !devices_ready(hook)) return 0;
  return g_state.device_blocks.find(hook, pool, entry) ? entry.device : 0;
}

std::size_t pools_of(InHook hook, Vendor vendor, std::uint32_t device,
                     std::span<std::uint64_t> handles) noexcept {
  if (phase() == Phase::off || !devices_ready(hook)) return 0;
  std::size_t found = 0;
  g_state.device_blocks.for_each(hook, [&](const DeviceBlock& block) noexcept {
    if (block.name.what == DeviceKey::pool && block.name.vendor == vendor &&
        block.device == device && found < handles.size())
      handles[found++] = block.name.key;
    return Then::leave;
  });
  return found;
}

}  // namespace oomrec::recorder
