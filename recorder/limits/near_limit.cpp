#include "recorder/limits/near_limit.h"

#include <time.h>

#include <algorithm>

#include "common/limits/health.h"
#include "common/system/files.h"
#include "common/system/syscalls.h"
#include "recorder/failures/episode.h"
#include "recorder/failures/failures.h"
#include "recorder/limits/thresholds.h"
#include "recorder/state/counters.h"
#include "recorder/state/growth.h"
#include "recorder/state/looks.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using limit::LimitUsage;
using session::g_session;
using session::Health;

namespace {

constexpr std::uint32_t kThoroughEvery = 10;  // ticks: once a second
constexpr std::uint32_t kFindEvery = 50;      // samples: the process may move to another cgroup
constexpr std::uint32_t kRearmSamples = 2;    // in a row: one may fall between two large blocks
constexpr std::int64_t kChangeBytes = std::int64_t{1} << 20;  // change that triggers a check
constexpr std::uint64_t kBetweenFreesNs = 10'000'000;         // checks of programs that often free
constexpr std::uint32_t kEasedFull = 1000;  // PSI, 1/100 %: below, an episode of pressure is over

struct NearLimit {
  std::atomic<bool> busy{false};
  limit::CgroupDirectories cgroup{};
  std::uint32_t samples = 0;
  bool warned = false;                               // no other bundle until the limit is far again
  std::uint32_t far_samples = 0;                     // in a row
  bool pressure_reported = false;                    // no other bundle until the pressure has eased
  limit::StallCounters stalls;                       // at the last thorough sample
  std::atomic<std::int64_t> next_check_bytes{kFar};  // live bytes from which a sample is due
  std::uint64_t looked_at_bytes = 0;                 // resident then; 0: not yet
  std::uint64_t live_at_look_bytes = 0;
  std::uint64_t next_look_ns = 0;
};
constinit NearLimit g_near;

std::uint64_t at_least_zero(std::int64_t bytes) noexcept {
  return bytes < 0 ? 0 : static_cast<std::uint64_t>(bytes);
}

std::uint64_t distance(std::uint64_t a, std::uint64_t b) noexcept { return a > b ? a - b : b - a; }

// Names it in the session if it is another one than before.
void find_cgroup(InHook hook, Health& health) noexcept {
  limit::Ceilings seen;
  limit::read_cgroup(hook, seen, &g_near.cgroup);
  health.cgroup_limit_bytes.store(seen.cgroup_limit_bytes, std::memory_order_relaxed);
  health.cgroup_used_bytes.store(seen.cgroup_used_bytes, std::memory_order_relaxed);
  session::Header& header = g_session.header();
  if (g_session.view().string(header.cgroup) == g_near.cgroup.own) return;
  header.cgroup = g_session.add_string(hook, g_near.cgroup.own);
  header.cgroup_path = g_session.add_string(hook, g_near.cgroup.named);
}

// It may be set while the process runs, as Kubernetes does in place.
void read_limit(InHook hook, Health& health) noexcept {
  std::uint64_t limit = 0;
  if (limit::read_cgroup_limit(hook, g_near.cgroup, limit))
    health.cgroup_limit_bytes.store(limit, std::memory_order_relaxed);
}

void read_stalls(InHook hook, Health& health) noexcept {
  const limit::StallCounters now = limit::read_slow_health(hook, g_near.cgroup, health);
  g_session.header().stalls = limit::stalls_between(g_near.stalls, now);
  g_near.stalls = now;
}

// True: the sample was a thorough one.
bool sample(InHook hook, std::uint64_t now) noexcept {
  Health& health = g_session.header().health;
  const std::uint32_t number = g_near.samples++;
  number % kFindEvery == 0 ? find_cgroup(hook, health) : read_limit(hook, health);
  limit::read_quick_health(hook, g_near.cgroup, health);
  const bool thoroughly = number % kThoroughEvery == 0;
  if (thoroughly) read_stalls(hook, health);
  health.live_bytes.store(at_least_zero(live_bytes(nullptr)), std::memory_order_relaxed);
  health.time_ns.store(now, std::memory_order_release);
  return thoroughly;
}

enum class Limits : std::uint8_t { that_kill, all };

LimitUsage nearest(Limits limits) noexcept {
  const Health& health = g_session.header().health;
  LimitUsage found = limit::usage_of_killing_limit(health);
  if (limits == Limits::all) {
    const LimitUsage to_failure = limit::usage_of_failing_limit(health, g_state.limit.bytes());
    if (found.limit_bytes == 0 || to_failure.percent() > found.percent()) found = to_failure;
  }
  return found;
}

// The nearest of the limits that --warn covers.
LimitUsage nearest_watched() noexcept {
  return nearest(g_state.options.is_named(OptionId::warn) ? Limits::all : Limits::that_kill);
}

// What of a reservation is touched counts only after a look.
bool may_be_over_soft_limit() noexcept {
  const std::uint64_t usable = g_state.ranges.usable_bytes(), limit = g_state.limit.bytes();
  return limit != 0 && usable >= limit / 8 &&
         at_least_zero(live_bytes(nullptr)) + usable >= limit / 4 * 3;
}

// The process may be killed soon, without another call of ours: what of its holders is resident is
// known only from now. Again once that has changed by a part of the limit, and seldom if it takes
// long.
void look_if_near(InHook hook, std::uint64_t now) noexcept {
  constexpr unsigned kNearPercent = 50, kNearerPercent = 85;
  constexpr std::uint64_t kPartOfLimit = 32, kPartOfTime = 200, kPartOfTimeNearer = 50;
  // On a busy machine a look of 1 ms may take 50. Counted as the program's time, that was the only
  // look for ten seconds: most of what was resident at the end had no line.
  constexpr std::uint64_t kPartOfTimeWaiting = 20;
  constexpr std::uint64_t kLeast = 256 << 20;
  const session::Header& header = g_session.header();
  const std::uint64_t available = header.health.available_bytes.load(std::memory_order_relaxed);
  const std::uint64_t resident = header.health.rss_bytes.load(std::memory_order_relaxed);
  const LimitUsage usage = limit::usage_of_killing_limit(header.health);
  std::uint64_t limit = 0;
  bool is_nearer = usage.percent() >= kNearerPercent;
  if (usage.percent() >= kNearPercent) {
    limit = usage.limit_bytes;
  } else if (may_be_over_soft_limit()) {
    limit = g_state.limit.bytes();
    is_nearer = true;
  } else if (available != 0 && available < header.ram_bytes / 8) {
    limit = header.ram_bytes;
  } else if (g_state.ranges.usable_bytes() >= kReservedBytes) {
    limit = std::max(resident, kLeast);  // to know which stacks make reservations grow
  }
  if (limit == 0 || now < g_near.next_look_ns) return;
  const std::uint64_t live = header.health.live_bytes.load(std::memory_order_relaxed);
  std::uint64_t change = distance(resident, g_near.looked_at_bytes);
  // An allocator may give back what it kept free while the program takes as much.
  if (is_nearer) change = std::max(change, distance(live, g_near.live_at_look_bytes));
  if (change < limit / kPartOfLimit) return;
  g_near.looked_at_bytes = resident;
  g_near.live_at_look_bytes = live;
  const std::uint64_t part = is_nearer ? kPartOfTimeNearer : kPartOfTime;
  const std::uint64_t began = system::processor_ns();
  const std::uint64_t took = look_at_pages(hook, kBriefLookNs);
  g_near.next_look_ns =
      now + std::max(part * (system::processor_ns() - began), kPartOfTimeWaiting * took);
}

// Pressure and faults are read once a second.
void check_pressure(InHook hook) noexcept {
  const session::Header& header = g_session.header();
  const limit::MachinePressure machine = limit::pressure_of(header.health);
  const bool waits = limit::is_stalled(header.stalls, machine) || machine.full >= kEasedFull;
  if (!waits) g_near.pressure_reported = false;
  if (limit::is_thrashing(header.stalls, machine) && !g_near.pressure_reported)
    g_near.pressure_reported = warn(hook, Trigger::pressure);
}

std::int64_t next_check() noexcept {
  return g_near.next_check_bytes.load(std::memory_order_relaxed);
}

unsigned warn_percent() noexcept { return static_cast<unsigned>(g_state.options.warn); }

// Schedules the next sample at so many live bytes, independent of the clock. Without warnings, too:
// the last sample is what remains after a kill.
void set_next_check(const LimitUsage& near) noexcept {
  constexpr unsigned kDefaultPercent = 95;
  unsigned percent = warn_percent() != 0 ? warn_percent() : kDefaultPercent;
  if (g_near.warned) percent -= std::min(percent, kRearmPercent);
  std::int64_t next = kFar;
  if (near.limit_bytes != 0 && (!g_near.warned || g_near.far_samples != 0)) {
    // Untouched memory may become resident in the meantime.
    const auto left = static_cast<std::int64_t>(near.limit_bytes / 100 * percent) -
                      static_cast<std::int64_t>(near.used_bytes) -
                      static_cast<std::int64_t>(near.untouched_bytes);
    next = live_bytes(nullptr) + left;
  }
  g_near.next_check_bytes.store(next, std::memory_order_relaxed);
}

// A limit that is far only while one large block makes way for the next one is still near.
enum class SampleAt : std::uint8_t { growth, free };

void check_warning(InHook hook, SampleAt at) noexcept {
  const LimitUsage near = nearest_watched();
  if (warn_percent() == 0) return set_next_check(near);
  const unsigned percent = near.percent();
  if (percent + kRearmPercent >= warn_percent()) {
    g_near.far_samples = 0;
  } else if (at != SampleAt::free && ++g_near.far_samples >= kRearmSamples) {
    g_near.warned = false;
  }
  if (percent >= warn_percent() && !g_near.warned) g_near.warned = warn(hook, Trigger::near_limit);
  set_next_check(near);
}

void sample_and_check(InHook hook, std::uint64_t now, SampleAt at) noexcept {
  if (system::is_sandboxed() || g_near.busy.exchange(true, std::memory_order_acquire)) return;
  if (sample(hook, now) && g_state.options.warn != 0) check_pressure(hook);
  check_thresholds(hook, nearest(Limits::all));
  look_if_near(hook, now);
  check_warning(hook, at);
  g_near.busy.store(false, std::memory_order_release);
}

// A large block is about to be freed. Memory that became resident without a call is seen now at the
// latest. The sample still includes the block, so its live bytes do, too: from the difference to
// later ones, the verdict knows how much has been freed since.
void check_before_free(InHook hook, std::int64_t freed_bytes) noexcept {
  Health& health = g_session.header().health;
  const std::uint64_t now = system::coarse_ns();
  const bool is_due = now - health.time_ns.load(std::memory_order_relaxed) >= kBetweenFreesNs;
  const ThreadState* const thread = current_thread(hook);
  if (thread != nullptr && thread->reallocating) {
    // Its block is not on record for the moment: its pages would be nobody's.
    if (is_due) g_near.next_check_bytes.store(0, std::memory_order_relaxed);
    return;
  }
  if (is_due) sample_and_check(hook, now, SampleAt::free);
  if (health.time_ns.load(std::memory_order_relaxed) != now) return;  // an older sample
  health.live_bytes.store(at_least_zero(live_bytes(nullptr) + freed_bytes),
                          std::memory_order_relaxed);
}

void reset_health() noexcept {
  g_near.busy.store(false, std::memory_order_relaxed);
  g_near.samples = g_near.far_samples = 0;
  g_near.stalls = {};
  g_near.warned = g_near.pressure_reported = false;
  g_near.next_check_bytes.store(kFar, std::memory_order_relaxed);
  g_near.looked_at_bytes = g_near.live_at_look_bytes = g_near.next_look_ns = 0;
  end_look();
  reset_growth();
}

}  // namespace

void start_health(InHook hook) noexcept {
  reset_health();
  sample(hook, system::coarse_ns());
  if (limit::usage_of_killing_limit(g_session.header().health).limit_bytes != 0)
    prepare_looks(hook);
  set_next_check(nearest_watched());  // the limit may be near before the first tick
}

void check_limits(InHook hook, std::uint64_t now_ns) noexcept {
  sample_and_check(hook, now_ns, SampleAt::growth);
}

void on_published(InHook hook, std::int64_t share_bytes) noexcept {
  observe_soft_limit(hook);
  if (share_bytes < 0 && root_of_episode() != 0) lower_least_live_bytes(live_bytes(nullptr));
  check_soft_limit_thresholds(hook, share_bytes);
  if (share_bytes <= -kChangeBytes) return check_before_free(hook, -share_bytes);
  if (share_bytes >= kChangeBytes && live_bytes(nullptr) >= next_check())
    sample_and_check(hook, system::coarse_ns(), SampleAt::growth);
}

LimitUsage sample_nearest(InHook hook) noexcept {
  if (!system::is_sandboxed() && !g_near.busy.exchange(true, std::memory_order_acquire)) {
    Health& health = g_session.header().health;
    limit::read_quick_health(hook, g_near.cgroup, health);
    health.live_bytes.store(at_least_zero(live_bytes(nullptr)), std::memory_order_relaxed);
    g_near.busy.store(false, std::memory_order_release);
  }
  return nearest(Limits::all);
}

LimitUsage nearest_cached(InHook) noexcept {
  Health& health = g_session.header().health;
  health.live_bytes.store(at_least_zero(live_bytes(nullptr)), std::memory_order_relaxed);
  return nearest(Limits::all);
}

}  // namespace oomrec::recorder
