// A bundle before a device refuses: where the user asked to be warned.
//
// A full device refuses, and the refusal has its own bundle; so it is watched only with --warn, as
// --limit is. Once an approach: not again before the device is some percent farther away.
#include "recorder/device/devices.h"
#include "recorder/failures.h"
#include "recorder/limit/health.h"
#include "recorder/system/files.h"

namespace oomrec::recorder {

using session::g_session;

namespace {

constexpr std::uint32_t kWatched = 64;  // devices; of more, the rest is not
constexpr unsigned kRearmPercent = 5;
constinit std::atomic<bool> g_told[kWatched] = {};

}  // namespace

void watch_device(InHook hook, std::uint32_t device) noexcept {
  const auto mark = static_cast<unsigned>(g_state.options.warn);
  if (mark == 0 || !g_state.options.warn_named || device == 0 || device >= kWatched ||
      device >= g_session.devices.size() || system::is_sandboxed())
    return;
  std::atomic<bool>& told = g_told[device];
  const unsigned percent = limit::nearness_of(g_session.devices.at(device)).percent();
  if (percent + kRearmPercent < mark) told.store(false, std::memory_order_relaxed);
  if (percent < mark || told.exchange(true, std::memory_order_relaxed)) return;
  session::Header& header = g_session.header();
  header.near_device.store(device, std::memory_order_relaxed);
  told.store(warn(hook, Trigger::near_limit), std::memory_order_relaxed);
  header.near_device.store(0, std::memory_order_relaxed);
}

void forget_near_devices(InHook) noexcept {
  for (std::atomic<bool>& told : g_told) told.store(false, std::memory_order_relaxed);
}

}  // namespace oomrec::recorder
