#include "recorder/device_memory/polling.h"

#include "common/system/files.h"
#include "recorder/device_memory/warning.h"
#include "recorder/devices/registry.h"

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

}  // namespace oomrec::recorder
