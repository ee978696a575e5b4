#include "recorder/near_limit.h"

#include <limits>

#include "recorder/counters.h"
#include "recorder/failures.h"
#include "recorder/limit/health.h"
#include "recorder/system/files.h"

namespace oomrec::recorder {

using limit::Nearness;
using session::g_session;
using session::Health;

namespace {

constexpr std::uint32_t kThoroughEvery = 10;  // ticks: a second
constexpr std::uint32_t kFindEvery = 50;      // the process may have been moved, the limit changed
constexpr unsigned kRearmPercent = 5;  // so far below the mark before there is another bundle
constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();

struct NearLimit {
  std::atomic<bool> looking{false};
  limit::CgroupPlace place{};
  std::uint32_t looks = 0;
  bool told = false;                          // no other bundle before it is far again
  std::atomic<std::int64_t> live_mark{kFar};  // live bytes from which on a look is due
};
constinit NearLimit g_near;

std::uint64_t at_least_zero(std::int64_t bytes) noexcept {
  return bytes < 0 ? 0 : static_cast<std::uint64_t>(bytes);
}

void find_cgroup(InHook hook, Health& health) noexcept {
  limit::Ceilings seen;
  limit::read_cgroup(hook, seen, &g_near.place);
  health.cgroup_limit_bytes.store(seen.cgroup_limit_bytes, std::memory_order_relaxed);
  health.cgroup_used_bytes.store(seen.cgroup_used_bytes, std::memory_order_relaxed);
}

void look(InHook hook, std::uint64_t now) noexcept {
  Health& health = g_session.header().health;
  const std::uint32_t number = g_near.looks++;
  if (number % kFindEvery == 0) find_cgroup(hook, health);
  limit::look_quickly(hook, g_near.place, health);
  if (number % kThoroughEvery == 0) limit::look_thoroughly(hook, g_near.place, health);
  health.live_bytes.store(at_least_zero(live_bytes(nullptr)), std::memory_order_relaxed);
  health.time_ns.store(now, std::memory_order_release);
}

// The limit that is nearest, of those that are watched.
Nearness nearest() noexcept {
  const Health& health = g_session.header().health;
  Nearness found = limit::nearness_to_kill(health);
  if (g_state.options.warn_named) {
    const Nearness refusal = limit::nearness_to_refusal(health, g_state.limit.bytes());
    if (refusal.percent() > found.percent()) found = refusal;
  }
  return found;
}

void judge(InHook hook) noexcept {
  const auto warn = static_cast<unsigned>(g_state.options.warn);
  if (warn == 0) return;
  const Nearness near = nearest();
  const unsigned percent = near.percent();
  if (percent + kRearmPercent < warn) g_near.told = false;
  if (percent >= warn && !g_near.told) g_near.told = warn_of_limit(hook);
  std::int64_t mark = kFar;
  if (near.limit_bytes != 0 && !g_near.told) {
    const auto left = static_cast<std::int64_t>(near.limit_bytes / 100 * warn) -
                      static_cast<std::int64_t>(near.sum_bytes());
    mark = live_bytes(nullptr) + left;
  }
  g_near.live_mark.store(mark, std::memory_order_relaxed);
}

void look_and_judge(InHook hook, std::uint64_t now) noexcept {
  if (system::is_sandboxed() || g_near.looking.exchange(true, std::memory_order_acquire)) return;
  look(hook, now);
  judge(hook);
  g_near.looking.store(false, std::memory_order_release);
}

}  // namespace

void begin_health(InHook hook) noexcept {
  forget_limits(hook);
  look(hook, system::coarse_ns());
  session::Header& header = g_session.header();
  header.cgroup = g_session.add_string(hook, g_near.place.own);
  header.cgroup_path = g_session.add_string(hook, g_near.place.named);
}

void watch_limits(InHook hook, std::uint64_t now_ns) noexcept { look_and_judge(hook, now_ns); }

void watch_growth(InHook hook) noexcept {
  if (live_bytes(nullptr) < g_near.live_mark.load(std::memory_order_relaxed)) return;
  look_and_judge(hook, system::coarse_ns());
}

void forget_limits(InHook) noexcept {
  g_near.looking.store(false, std::memory_order_relaxed);
  g_near.looks = 0;
  g_near.told = false;
  g_near.live_mark.store(kFar, std::memory_order_relaxed);
}

}  // namespace oomrec::recorder
