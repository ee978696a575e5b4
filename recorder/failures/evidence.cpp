#include "recorder/failures/evidence.h"

#include <atomic>
#include <cerrno>

#include "common/limits/counted_limits.h"
#include "common/limits/memory_pools.h"
#include "common/system/mutex.h"

namespace oomrec::recorder {
namespace {

constexpr std::uint64_t kFreshNs = 100'000'000;

template <class Value>
struct CachedReading {
  Value value;
  std::uint64_t time_ns;

  template <class Read>
  const Value& get(std::uint64_t now_ns, EvidenceFrom from, Read read) noexcept {
    if (from == EvidenceFrom::now || time_ns == 0 || now_ns - time_ns > kFreshNs) {
      value = read();
      time_ns = now_ns;
    }
    return value;
  }
};

struct EvidenceCache {
  system::Mutex lock;
  CachedReading<limit::Ceilings> ceilings;
  CachedReading<session::CountedLimits> tasks, mappings;
};
constinit EvidenceCache g_cache{};

constinit std::atomic<bool> g_future_is_locked{false};

limit::PoolsNeeded pools_needed(const Request& request) noexcept {
  const std::uint8_t log2 = request.huge_page_log2;
  return {.locked = request.locks || g_future_is_locked.load(std::memory_order_relaxed),
          .huge_pages = log2 != 0,
          .huge_page_bytes = log2 > kDefaultHugePage ? std::uint64_t{1} << (log2 & 63) : 0};
}

}  // namespace

Evidence read_evidence(InHook hook, const Request& request, int error, std::uint64_t now_ns,
                       EvidenceFrom from) noexcept {
  Evidence seen{};
  const system::MutexGuard guard(g_cache.lock);
  if (!guard) return seen;
  seen.ceilings =
      g_cache.ceilings.get(now_ns, from, [&]() noexcept { return limit::read_ceilings(hook); });
  // The process may have grown since, up to the limit that explains this failure.
  if (g_cache.ceilings.time_ns != now_ns) limit::read_usage(hook, seen.ceilings);
  if (error == 0) return seen;
  limit::read_memory_pools(hook, pools_needed(request), seen.pools);
  const auto read = [&](auto read_limits) noexcept {
    session::CountedLimits limits{};
    read_limits(hook, limits);
    return limits;
  };
  seen.counted =
      error == EAGAIN && !request.locks
          ? g_cache.tasks.get(now_ns, from, [&] { return read(limit::read_task_limits); })
          : g_cache.mappings.get(now_ns, from, [&] { return read(limit::read_mapping_limits); });
  return seen;
}

void set_future_is_locked(bool locked) noexcept {
  g_future_is_locked.store(locked, std::memory_order_relaxed);
}

// A fork's child has no locked memory.
void reset_evidence_after_fork() noexcept {
  g_future_is_locked.store(false, std::memory_order_relaxed);
  g_cache.lock.unlock();
  g_cache.ceilings.time_ns = g_cache.tasks.time_ns = g_cache.mappings.time_ns = 0;
}

}  // namespace oomrec::recorder
