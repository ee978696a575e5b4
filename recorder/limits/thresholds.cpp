#include "recorder/limits/thresholds.h"

#include <algorithm>
#include <limits>

#include "common/system/files.h"
#include "recorder/fault_injection/fault_injection.h"
#include "recorder/limits/near_limit.h"
#include "recorder/state/counters.h"
#include "recorder/state/notifications.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using session::g_session;

namespace {

constexpr std::uint32_t kMostMarks = 8;
constexpr unsigned kRearmPercent = 5;
constexpr std::uint32_t kMostDevices = 63;  // of more, the rest is not watched
constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();

struct Mark {
  std::uint32_t percent;
  std::uint32_t users;   // 0: the place is free
  std::uint64_t passed;  // bit 0: of the host; bit n: of device n
};

struct News {
  system::SpinLock lock;  // marks
  Mark marks[kMostMarks] = {};
  std::atomic<bool> any{false};
  std::atomic<std::int64_t> live_mark{
      kFar};                                 // live bytes that pass the next mark of the soft limit
  std::atomic<std::int64_t> live_rearm{-1};  // live bytes below which one may be passed again
};
constinit News g_news;

// Under the lock. How far `percent` of what bit `which` stands for changes the marks: true when one
// is passed, or may be passed again: who waits keeps count of its own.
bool pass(unsigned percent, unsigned which) noexcept {
  bool changed = false;
  const std::uint64_t bit = std::uint64_t{1} << which;
  for (Mark& mark : g_news.marks) {
    if (mark.users == 0) continue;
    if (percent >= mark.percent) {
      changed |= (mark.passed & bit) == 0;
      mark.passed |= bit;
    } else if (percent + kRearmPercent < mark.percent) {
      changed |= (mark.passed & bit) != 0;
      mark.passed &= ~bit;
    }
  }
  return changed;
}

std::int64_t part_of(std::uint64_t limit, std::uint32_t percent) noexcept {
  return static_cast<std::int64_t>(static_cast<double>(limit) / 100 * static_cast<double>(percent));
}

// Under the lock.
void set_live_mark() noexcept {
  std::int64_t next = kFar, rearm = -1;
  const std::uint64_t limit = g_state.limit.bytes();
  for (const Mark& mark : g_news.marks) {
    if (limit == 0 || mark.users == 0) continue;
    if ((mark.passed & 1) == 0) {
      next = std::min(next, part_of(limit, mark.percent));
    } else if (mark.percent > kRearmPercent) {
      rearm = std::max(rearm, part_of(limit, mark.percent - kRearmPercent));
    }
  }
  g_news.live_mark.store(next, std::memory_order_relaxed);
  g_news.live_rearm.store(rearm, std::memory_order_relaxed);
}

bool pass_devices() noexcept {
  bool passed = false;
  const std::uint32_t devices = std::min(g_session.devices.size(), kMostDevices + 1);
  for (std::uint32_t entry = 1; entry < devices; ++entry) {
    const session::Device& device = g_session.devices.at(entry);
    passed |= pass(std::max(limit::nearness_to_limit(device).percent(),
                            limit::nearness_to_full(device).percent()),
                   entry);
  }
  return passed;
}

bool judge(const limit::Nearness& nearest) noexcept {
  const system::SpinGuard guard(g_news.lock);
  if (!guard) return false;
  const bool host = pass(nearest.percent(), 0);
  const bool device = pass_devices();
  set_live_mark();
  return host || device;
}

}  // namespace

bool notify_at(InHook hook, std::uint32_t percent, bool on) noexcept {
  if (percent == 0 || percent > 100) return false;
  {
    const system::SpinGuard guard(g_news.lock);
    if (!guard) return false;
    Mark* place = nullptr;
    for (Mark& mark : g_news.marks) {
      if (mark.users != 0 && mark.percent == percent) place = &mark;
      if (mark.users == 0 && place == nullptr && on) place = &mark;
    }
    if (place == nullptr) return !on;
    if (on) {
      if (place->users++ == 0) *place = {percent, 1, 0};
    } else {
      --place->users;
    }
    bool any = false;
    for (const Mark& mark : g_news.marks) any |= mark.users != 0;
    g_news.any.store(any, std::memory_order_relaxed);
    set_live_mark();
  }
  if (on && phase() == Phase::active) tell_nearness(hook, nearest_now(hook));
  return true;
}

void check_news(InHook hook, std::int64_t grown_bytes) noexcept {
  const bool grown = grown_bytes > 0;
  const std::int64_t mark =
      (grown ? g_news.live_mark : g_news.live_rearm).load(std::memory_order_relaxed);
  if (mark == kFar || mark < 0) [[likely]]
    return;
  const std::int64_t live = live_bytes(nullptr);
  if (grown ? live < mark : live >= mark) return;
  // Not of the soft limit alone: another may be as near as before.
  tell_nearness(hook, nearest_as_known(hook));
}

void tell_nearness(InHook hook, const limit::Nearness& nearest) noexcept {
  if (g_news.any.load(std::memory_order_relaxed) && judge(nearest)) raise_news(hook);
}

void limit_changed(InHook) noexcept {
  const system::SpinGuard guard(g_news.lock);
  if (guard) set_live_mark();
}

void set_limit(InHook hook, std::uint64_t bytes) noexcept {
  g_state.limit.set(bytes);
  g_state.may_refuse.store(bytes != 0 || injects(), std::memory_order_relaxed);
  if (phase() == Phase::active)
    g_session.header().soft_limit_bytes.store(bytes, std::memory_order_relaxed);
  limit_changed(hook);
}

void forget_news(InHook) noexcept {
  g_news.lock.unlock();
  for (Mark& mark : g_news.marks) mark = {};
  g_news.any.store(false, std::memory_order_relaxed);
  g_news.live_mark.store(kFar, std::memory_order_relaxed);
  g_news.live_rearm.store(-1, std::memory_order_relaxed);
}

}  // namespace oomrec::recorder
