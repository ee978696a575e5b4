#include "recorder/device_memory/warning.h"

#include <algorithm>

#include "common/limits/health.h"
#include "common/system/files.h"
#include "recorder/devices/registry.h"
#include "recorder/failures/failures.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using session::Device;
using session::g_session;

namespace {

constexpr std::uint32_t kWatched = 64;  // devices; any more are not watched
constexpr unsigned kRearmPercent = 5;

constinit std::atomic<bool> g_warned[kWatched] = {};

bool is_watched(std::uint32_t device) noexcept {
  return g_state.options.warn != 0 && g_state.options.is_named(OptionId::warn) &&
         device < kWatched && is_known_device(device);
}

unsigned warn_percent() noexcept { return static_cast<unsigned>(g_state.options.warn); }

// By the last poll, and what this process did since.
unsigned expected_percent(const Device& device) noexcept {
  limit::LimitUsage near = limit::usage_of_device_memory(device);
  const std::uint64_t counted = device.counted_bytes();
  const std::uint64_t then = device.polled_counted_bytes;
  const std::uint64_t gone = then > counted ? then - counted : 0;
  near.used_bytes -= std::min(gone, near.used_bytes);
  near.used_bytes += counted > then ? counted - then : 0;
  return near.percent();
}

}  // namespace

bool expects_full(std::uint32_t device) noexcept {
  if (!is_watched(device) || g_warned[device].load(std::memory_order_relaxed)) return false;
  return expected_percent(g_session.devices.at(device)) >= warn_percent();
}

void watch_device(InHook hook, std::uint32_t entry) noexcept {
  if (!is_watched(entry) || system::is_sandboxed()) return;
  const Device& device = g_session.devices.at(entry);
  std::atomic<bool>& warned = g_warned[entry];
  const unsigned to_limit = limit::usage_of_device_limit(device).percent();
  const unsigned to_full =
      std::min(expected_percent(device), limit::usage_of_device_memory(device).percent());
  const unsigned percent = std::max(to_limit, to_full);
  if (percent + kRearmPercent < warn_percent()) warned.store(false, std::memory_order_relaxed);
  if (percent < warn_percent() || warned.exchange(true, std::memory_order_relaxed)) return;
  session::Header& header = g_session.header();
  header.near_device.store(entry, std::memory_order_relaxed);
  warned.store(warn(hook, Trigger::near_limit), std::memory_order_relaxed);
  header.near_device.store(0, std::memory_order_relaxed);
}

void reset_device_warnings_after_fork(InHook) noexcept {
  for (std::atomic<bool>& warned : g_warned) warned.store(false, std::memory_order_relaxed);
}

}  // namespace oomrec::recorder
