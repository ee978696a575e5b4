#include "recorder/limits/near_limit.h"

#include <limits>

#include "common/limits/health.h"
#include "common/system/files.h"
#include "recorder/failures/failures.h"
#include "recorder/limits/thresholds.h"
#include "recorder/state/counters.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using limit::Nearness;
using session::g_session;
using session::Health;

namespace {

constexpr std::uint32_t kThoroughEvery = 10;  // ticks: a second
constexpr std::uint32_t kFindEvery = 50;      // the process may have been moved, the limit changed
constexpr unsigned kRearmPercent = 5;  // so far below the mark before there is another bundle
constexpr std::int64_t kGrowthBytes = std::int64_t{1} << 20;  // a block that is looked at at once
constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();

struct NearLimit {
  std::atomic<bool> looking{false};
  limit::CgroupPlace place{};
  std::uint32_t looks = 0;
  bool told = false;                          // no other bundle before it is far again
  bool told_thrashing = false;                // likewise, before the pressure has eased
  std::uint64_t faults = 0;                   // major ones, at the last thorough look
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

// True: thoroughly.
bool look(InHook hook, std::uint64_t now) noexcept {
  Health& health = g_session.header().health;
  const std::uint32_t number = g_near.looks++;
  if (number % kFindEvery == 0) find_cgroup(hook, health);
  limit::look_quickly(hook, g_near.place, health);
  const bool thoroughly = number % kThoroughEvery == 0;
  if (thoroughly) limit::look_thoroughly(hook, g_near.place, health);
  health.live_bytes.store(at_least_zero(live_bytes(nullptr)), std::memory_order_relaxed);
  health.time_ns.store(now, std::memory_order_release);
  return thoroughly;
}

// The limit that is nearest, of those that kill, or of all.
Nearness nearest(bool of_all) noexcept {
  const Health& health = g_session.header().health;
  Nearness found = limit::nearness_to_kill(health);
  if (of_all) {
    const Nearness refusal = limit::nearness_to_refusal(health, g_state.limit.bytes());
    if (found.limit_bytes == 0 || refusal.percent() > found.percent()) found = refusal;
  }
  return found;
}

// Of those that are watched.
Nearness nearest() noexcept { return nearest(g_state.options.warn_named); }

// Pressure and faults are read once a second.
void judge_pressure(InHook hook) noexcept {
  const Health& health = g_session.header().health;
  const std::uint64_t faults = health.major_faults.load(std::memory_order_relaxed);
  const std::uint32_t full = health.pressure_full.load(std::memory_order_relaxed);
  const std::uint64_t more = faults - g_near.faults;
  g_near.faults = faults;
  if (full < limit::kThrashingFull / 2) g_near.told_thrashing = false;
  if (full >= limit::kThrashingFull && more >= limit::kThrashingFaults && !g_near.told_thrashing)
    g_near.told_thrashing = warn(hook, Trigger::pressure);
}

unsigned percent_mark() noexcept { return static_cast<unsigned>(g_state.options.warn); }

// From how much live memory on the next look is due, whatever the clock says.
void set_mark(const Nearness& near) noexcept {
  std::int64_t mark = kFar;
  if (near.limit_bytes != 0 && !g_near.told) {
    const auto left = static_cast<std::int64_t>(near.limit_bytes / 100 * percent_mark()) -
                      static_cast<std::int64_t>(near.sum_bytes());
    mark = live_bytes(nullptr) + left;
  }
  g_near.live_mark.store(mark, std::memory_order_relaxed);
}

void judge(InHook hook) noexcept {
  if (percent_mark() == 0) return;
  const Nearness near = nearest();
  const unsigned percent = near.percent();
  if (percent + kRearmPercent < percent_mark()) g_near.told = false;
  if (percent >= percent_mark() && !g_near.told) g_near.told = warn(hook, Trigger::near_limit);
  set_mark(near);
}

void look_and_judge(InHook hook, std::uint64_t now) noexcept {
  if (system::is_sandboxed() || g_near.looking.exchange(true, std::memory_order_acquire)) return;
  if (look(hook, now) && g_state.options.warn != 0) judge_pressure(hook);
  tell_nearness(hook, nearest(true));
  judge(hook);
  g_near.looking.store(false, std::memory_order_release);
}

}  // namespace

void begin_health(InHook hook) noexcept {
  forget_limits(hook);
  look(hook, system::coarse_ns());
  if (percent_mark() != 0) set_mark(nearest());  // it may be near before the first tick
  session::Header& header = g_session.header();
  g_near.faults = header.health.major_faults.load(std::memory_order_relaxed);
  header.cgroup = g_session.add_string(hook, g_near.place.own);
  header.cgroup_path = g_session.add_string(hook, g_near.place.named);
}

void watch_limits(InHook hook, std::uint64_t now_ns) noexcept { look_and_judge(hook, now_ns); }

void on_published(InHook hook, std::int64_t share_bytes) noexcept {
  check_news(hook, share_bytes);
  if (share_bytes < kGrowthBytes ||
      live_bytes(nullptr) < g_near.live_mark.load(std::memory_order_relaxed))
    return;
  look_and_judge(hook, system::coarse_ns());
}

Nearness nearest_now(InHook hook) noexcept {
  if (!system::is_sandboxed() && !g_near.looking.exchange(true, std::memory_order_acquire)) {
    Health& health = g_session.header().health;
    limit::look_quickly(hook, g_near.place, health);
    health.live_bytes.store(at_least_zero(live_bytes(nullptr)), std::memory_order_relaxed);
    g_near.looking.store(false, std::memory_order_release);
  }
  return nearest(true);
}

Nearness nearest_as_known(InHook) noexcept {
  Health& health = g_session.header().health;
  health.live_bytes.store(at_least_zero(live_bytes(nullptr)), std::memory_order_relaxed);
  return nearest(true);
}

void forget_limits(InHook) noexcept {
  g_near.looking.store(false, std::memory_order_relaxed);
  g_near.looks = 0;
  g_near.told = g_near.told_thrashing = false;
  g_near.live_mark.store(kFar, std::memory_order_relaxed);
}

}  // namespace oomrec::recorder
