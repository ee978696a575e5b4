#include "recorder/limits/thresholds.h"

#include <algorithm>

#include "common/system/files.h"
#include "recorder/fault_injection/fault_injection.h"
#include "recorder/limits/near_limit.h"
#include "recorder/state/counters.h"
#include "recorder/state/notifications.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using session::g_session;

namespace {

constexpr std::uint32_t kSlots = 8;
constexpr std::uint32_t kMostDevices = 63;  // any more are not watched

struct Threshold {
  std::uint32_t percent;
  std::uint32_t users;   // 0: the slot is free
  std::uint64_t passed;  // bit 0: of the host; bit n: of device n
};

struct Thresholds {
  system::Mutex lock;  // of the slots
  Threshold slots[kSlots] = {};
  std::atomic<bool> any{false};
  std::atomic<std::int64_t> live_ceiling{
      kFar};  // live bytes that pass the next threshold of the soft limit
  std::atomic<std::int64_t> live_floor{-1};  // live bytes below which one may be passed again
};
constinit Thresholds g_thresholds;

// Under the lock. Records that memory of bit `which` is at `percent`. True: a threshold was
// crossed, in either direction; waiters keep their own count of crossings.
bool cross(unsigned percent, unsigned which) noexcept {
  bool changed = false;
  const std::uint64_t bit = std::uint64_t{1} << which;
  for (Threshold& threshold : g_thresholds.slots) {
    if (threshold.users == 0) continue;
    if (percent >= threshold.percent) {
      changed |= (threshold.passed & bit) == 0;
      threshold.passed |= bit;
    } else if (percent + kRearmPercent < threshold.percent) {
      changed |= (threshold.passed & bit) != 0;
      threshold.passed &= ~bit;
    }
  }
  return changed;
}

std::int64_t part_of(std::uint64_t limit, std::uint32_t percent) noexcept {
  return static_cast<std::int64_t>(static_cast<double>(limit) / 100 * static_cast<double>(percent));
}

// Under the lock.
void update_live_bounds() noexcept {
  std::int64_t next = kFar, rearm = -1;
  const std::uint64_t limit = g_state.limit.bytes();
  for (const Threshold& threshold : g_thresholds.slots) {
    if (limit == 0 || threshold.users == 0) continue;
    if ((threshold.passed & 1) == 0) {
      next = std::min(next, part_of(limit, threshold.percent));
    } else if (threshold.percent > kRearmPercent) {
      rearm = std::max(rearm, part_of(limit, threshold.percent - kRearmPercent));
    }
  }
  g_thresholds.live_ceiling.store(next, std::memory_order_relaxed);
  g_thresholds.live_floor.store(rearm, std::memory_order_relaxed);
}

bool cross_on_devices() noexcept {
  bool passed = false;
  const std::uint32_t devices = std::min(g_session.devices.size(), kMostDevices + 1);
  for (std::uint32_t entry = 1; entry < devices; ++entry) {
    const session::Device& device = g_session.devices.at(entry);
    passed |= cross(std::max(limit::usage_of_device_limit(device).percent(),
                             limit::usage_of_device_memory(device).percent()),
                    entry);
  }
  return passed;
}

bool check(const limit::LimitUsage& nearest) noexcept {
  const system::MutexGuard guard(g_thresholds.lock);
  if (!guard) return false;
  const bool host = cross(nearest.percent(), 0);
  const bool device = cross_on_devices();
  update_live_bounds();
  return host || device;
}

// Call under the lock. nullptr: this percentage has no users.
Threshold* find(std::uint32_t percent) noexcept {
  for (Threshold& threshold : g_thresholds.slots)
    if (threshold.users != 0 && threshold.percent == percent) return &threshold;
  return nullptr;
}

// Under the lock; nullptr: all are used.
Threshold* find_free() noexcept {
  for (Threshold& threshold : g_thresholds.slots)
    if (threshold.users == 0) return &threshold;
  return nullptr;
}

// Under the lock, after a slot has changed.
void update() noexcept {
  bool any = false;
  for (const Threshold& threshold : g_thresholds.slots) any |= threshold.users != 0;
  g_thresholds.any.store(any, std::memory_order_relaxed);
  update_live_bounds();
}

}  // namespace

bool add_threshold(InHook hook, std::uint32_t percent) noexcept {
  if (percent == 0 || percent > 100) return false;
  {
    const system::MutexGuard guard(g_thresholds.lock);
    Threshold* slot = guard ? find(percent) : nullptr;
    if (guard && slot == nullptr) slot = find_free();
    if (slot == nullptr) return false;
    if (slot->users++ == 0) *slot = {percent, 1, 0};
    update();
  }
  if (phase() == Phase::active) check_thresholds(hook, sample_nearest(hook));
  return true;
}

bool remove_threshold(InHook, std::uint32_t percent) noexcept {
  if (percent == 0 || percent > 100) return false;
  const system::MutexGuard guard(g_thresholds.lock);
  if (!guard) return false;
  if (Threshold* const slot = find(percent); slot != nullptr) --slot->users;
  update();
  return true;
}

void check_soft_limit_thresholds(InHook hook, std::int64_t grown_bytes) noexcept {
  const bool grown = grown_bytes > 0;
  const std::int64_t bound =
      (grown ? g_thresholds.live_ceiling : g_thresholds.live_floor).load(std::memory_order_relaxed);
  if (bound == kFar || bound < 0) [[likely]]
    return;
  const std::int64_t live = live_bytes(nullptr);
  if (grown ? live < bound : live >= bound) return;
  // All limits: another one may be nearer than the soft limit.
  check_thresholds(hook, nearest_cached(hook));
}

void check_thresholds(InHook hook, const limit::LimitUsage& nearest) noexcept {
  if (g_thresholds.any.load(std::memory_order_relaxed) && check(nearest)) notify_waiters(hook);
}

void observe_soft_limit(InHook) noexcept {
  const std::uint64_t limit = g_state.limit.bytes();
  if (limit == 0) return;
  session::Header& header = g_session.header();
  if (header.python.version_hex != 0) g_state.limit.let_grow();
  const std::int64_t live = live_bytes(nullptr);
  g_state.limit.observe(live);
  const std::int64_t beyond = live - static_cast<std::int64_t>(limit);
  if (beyond <= 0) return;
  const std::uint64_t reserve = g_state.limit.reserve_bytes();
  raise_to(header.limit_reserve_bytes, reserve);  // it may have grown
  raise_to(header.limit_reserve_used_bytes, std::min(static_cast<std::uint64_t>(beyond), reserve));
}

void set_soft_limit(InHook, std::uint64_t bytes) noexcept {
  using live::SoftLimit;
  const std::uint64_t chosen = g_state.options.limit_reserve;
  const bool is_default = chosen == Options::kDefaultReserve;
  g_state.limit.set(bytes, is_default ? SoftLimit::default_reserve(bytes) : chosen, is_default);
  g_state.has_limit_or_rules.store(bytes != 0 || has_fault_rules(), std::memory_order_relaxed);
  if (phase() == Phase::active) {
    session::Header& header = g_session.header();
    header.soft_limit_bytes.store(bytes, std::memory_order_relaxed);
    header.limit_reserve_bytes.store(g_state.limit.reserve_bytes(), std::memory_order_relaxed);
  }
  const system::MutexGuard guard(g_thresholds.lock);
  if (guard) update_live_bounds();
}

void reset_thresholds_after_fork(InHook) noexcept {
  g_thresholds.lock.unlock();
  for (Threshold& threshold : g_thresholds.slots) threshold = {};
  g_thresholds.any.store(false, std::memory_order_relaxed);
  g_thresholds.live_ceiling.store(kFar, std::memory_order_relaxed);
  g_thresholds.live_floor.store(-1, std::memory_order_relaxed);
}

}  // namespace oomrec::recorder
