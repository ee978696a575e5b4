#include "recorder/failures/episode.h"

#include <algorithm>
#include <atomic>

#include "common/system/atomics.h"
#include "recorder/devices/registry.h"
#include "recorder/failures/failure_table.h"
#include "recorder/process/object_heap.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using session::Failure;
using session::g_session;

namespace {

constinit std::atomic<std::uint32_t> g_root{0};  // entry in `failures`; 0: no episode
constinit std::atomic<std::uint64_t> g_continued_ns{0};
constinit std::atomic<std::int64_t> g_least_live_bytes{0};  // since the root, or its latest repeat
constinit std::atomic<std::uint64_t> g_device_bytes{0};     // at the root, or its latest repeat
constexpr std::uint64_t kDeviceShare = 16;

constexpr std::uint8_t kNotShort = session::kFailureProbe | session::kFailureInjected;

bool is_impossible(const Failure& root, std::uint64_t bytes) noexcept {
  return root.ram_bytes != 0 && bytes > root.ram_bytes && bytes - root.ram_bytes > root.swap_bytes;
}

// Held on this device by the process.
std::uint64_t counted_on(std::uint32_t device) noexcept {
  return is_known_device(device) ? g_session.devices.at(device).counted_bytes() : 0;
}

bool has_resumed_with_device(const Failure& root, const FailedRequest& failed) noexcept {
  if (root.device.device == 0 || root.device.device != failed.request.device) return false;
  const std::uint64_t share = root.device.total_bytes / kDeviceShare;
  const std::uint64_t least_growth = std::max<std::uint64_t>(share, kGoneOnBytes);
  return counted_on(failed.request.device) >=
         g_device_bytes.load(std::memory_order_relaxed) + least_growth;
}

}  // namespace

bool is_aftershock(const Failure& root, std::uint64_t after_ns, std::uint64_t bytes,
                   Space space) noexcept {
  if (is_device_space(space) != is_device_space(static_cast<Space>(root.space))) return false;
  if (!is_device_space(space) && is_impossible(root, root.bytes) && !is_impossible(root, bytes))
    return false;
  return after_ns <= kSameMomentNs ||
         (after_ns <= kRecoveredNs && bytes < std::max(root.bytes, kSmallBytes));
}

void begin_episode(std::uint32_t root) noexcept {
  const bool is_short = (g_session.failures.at(root).flags & kNotShort) == 0;
  g_root.store(is_short ? root : 0, std::memory_order_release);  // its entry is complete
  repeat_root(g_session.failures.at(root).time_ns,
              static_cast<std::int64_t>(g_session.failures.at(root).live_bytes));
}

void repeat_root(std::uint64_t now_ns, std::int64_t live_bytes) noexcept {
  g_least_live_bytes.store(live_bytes, std::memory_order_relaxed);
  if (const std::uint32_t root = root_of_episode(); root != 0)
    g_device_bytes.store(counted_on(g_session.failures.at(root).device.device),
                         std::memory_order_relaxed);
  continue_episode(now_ns);
}

void continue_episode(std::uint64_t now_ns) noexcept {
  g_continued_ns.store(now_ns, std::memory_order_relaxed);
}

void lower_least_live_bytes(std::int64_t bytes) noexcept { lower_to(g_least_live_bytes, bytes); }

bool has_resumed(const FailedRequest& failed) noexcept {
  const std::uint32_t root_entry = root_of_episode();
  if (root_entry == 0) return false;
  const Failure& root = g_session.failures.at(root_entry);
  const bool on_device = is_device_space(static_cast<Space>(root.space));
  if (on_device != is_device_space(failed.request.space)) return false;
  if (on_device) return has_resumed_with_device(root, failed);
  // A look at an interpreter's own heap finds at once what has grown since the last one.
  if (has_object_heap()) return false;
  const bool same_moment =
      failed.time_ns < g_continued_ns.load(std::memory_order_relaxed) + kSameMomentNs;
  std::int64_t least_growth = kGoneOnBytes;
  if (same_moment && failed.thread != root.thread)
    least_growth = std::max(least_growth, static_cast<std::int64_t>(root.live_bytes / 2));
  const std::int64_t grown = failed.live_bytes - g_least_live_bytes.load(std::memory_order_relaxed);
  return grown >= least_growth + static_cast<std::int64_t>(g_state.limit.reserve_bytes());
}

std::uint32_t root_of_episode() noexcept { return g_root.load(std::memory_order_acquire); }

void end_episode() noexcept { g_root.store(0, std::memory_order_relaxed); }

void abandon_episode(InHook, std::uint64_t bundle) noexcept {
  end_episode();
  for (std::uint32_t entry = 1; entry < g_session.failures.size(); ++entry) {
    Failure& failure = g_session.failures.at(entry);
    if (failure.bundle.load(std::memory_order_relaxed) == bundle)
      failure.bundle.store(0, std::memory_order_relaxed);
  }
}

bool join_episode(InHook, FailedRequest& failed) noexcept {
  const std::uint32_t root_entry = root_of_episode();
  if (root_entry == 0 || failed.entry == root_entry) return false;
  const Failure& root = g_session.failures.at(root_entry);
  const std::uint64_t since_ns = g_continued_ns.load(std::memory_order_relaxed);
  const std::uint64_t after_ns = failed.time_ns > since_ns ? failed.time_ns - since_ns : 0;
  if (failed.request.probe || failed.request.rule != 0 ||
      !is_aftershock(root, after_ns, failed.request.bytes, failed.request.space))
    return false;
  const std::uint32_t bundle = root.bundle.load(std::memory_order_relaxed);
  if (failed.entry == 0) {
    set_bundle(failed, bundle);
    return true;
  }
  Failure& failure = g_session.failures.at(failed.entry);
  const std::uint32_t reported_in = failure.bundle.load(std::memory_order_relaxed);
  if (reported_in != 0) return reported_in == bundle;
  failure.flags |= session::kFailureAftershock;
  failure.bundle.store(bundle, std::memory_order_relaxed);
  return true;
}

bool was_aftershock(const FailedRequest& failed) noexcept {
  return failed.entry != 0 &&
         (g_session.failures.at(failed.entry).flags & session::kFailureAftershock) != 0;
}

bool is_root(const FailedRequest& failed) noexcept {
  return failed.entry != 0 && failed.entry == g_root.load(std::memory_order_relaxed);
}

}  // namespace oomrec::recorder
