#include "recorder/news.h"

#include <linux/futex.h>
#include <time.h>

#include <algorithm>
#include <limits>

#include "common/system/files.h"
#include "common/system/syscalls.h"
#include "recorder/counters.h"
#include "recorder/near_limit.h"

namespace oomrec::recorder {

using session::g_session;

namespace {

constexpr std::uint32_t kMostMarks = 8;
constexpr unsigned kRearmPercent = 5;
constexpr std::uint32_t kMostDevices = 63;  // of more, the rest is not watched
constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kSliceMs = 100;  // where no hook can wake, or may

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
  std::atomic<std::uint32_t> waiters{0};
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

void raise_news(InHook) noexcept {
  std::atomic<std::uint32_t>& word = g_session.header().news;
  word.fetch_add(1, std::memory_order_seq_cst);
  if (g_news.waiters.load(std::memory_order_seq_cst) != 0)
    system::call(SYS_futex, &word, FUTEX_WAKE, std::numeric_limits<int>::max());
}

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

std::uint32_t wait_for_news(std::uint32_t seen, std::uint32_t timeout_ms) noexcept {
  const std::uint64_t deadline = system::monotonic_ns() + std::uint64_t{timeout_ms} * 1'000'000;
  const auto left = [&]() noexcept {
    const std::uint64_t now = system::monotonic_ns();
    return now < deadline ? deadline - now : 0;
  };
  // There is no word yet: a fork's child gets one later, and so does a program that calls
  // oomrec_start().
  while (g_state.phase.load(std::memory_order_acquire) != Phase::active) {
    const std::uint64_t pause = std::min(left(), kSliceMs * 1'000'000);
    if (seen != 0 || pause == 0) return 0;
    const timespec time{0, static_cast<long>(pause)};
    if (system::call_anyway(SYS_nanosleep, &time, nullptr) == -EINTR) return 0;
  }
  std::atomic<std::uint32_t>& word = g_session.header().news;
  g_news.waiters.fetch_add(1, std::memory_order_seq_cst);
  std::uint64_t pause = left();
  while (word.load(std::memory_order_seq_cst) == seen && pause != 0) {
    if (system::is_sandboxed()) pause = std::min(pause, kSliceMs * 1'000'000);
    const timespec time{static_cast<time_t>(pause / 1'000'000'000),
                        static_cast<long>(pause % 1'000'000'000)};
    // The program's own call: made where a filter forbids ours, too.
    if (system::call_anyway(SYS_futex, &word, FUTEX_WAIT, seen, &time) == -EINTR) break;
    pause = left();
  }
  g_news.waiters.fetch_sub(1, std::memory_order_relaxed);
  return word.load(std::memory_order_seq_cst);
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

void forget_news(InHook) noexcept {
  g_news.lock.unlock();
  for (Mark& mark : g_news.marks) mark = {};
  g_news.any.store(false, std::memory_order_relaxed);
  g_news.live_mark.store(kFar, std::memory_order_relaxed);
  g_news.live_rearm.store(-1, std::memory_order_relaxed);
  g_news.waiters.store(0, std::memory_order_relaxed);
}

}  // namespace oomrec::recorder
