#include "recorder/failures/evidence.h"

#include <cerrno>

#include "common/limits/counted_limits.h"
#include "common/system/spin_lock.h"

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
  system::SpinLock lock;
  CachedReading<limit::Ceilings> ceilings;
  CachedReading<session::CountedLimits> tasks, mappings;
};
constinit EvidenceCache g_cache{};

}  // namespace

Evidence read_evidence(InHook hook, const Request& request, int error, std::uint64_t now_ns,
                       EvidenceFrom from) noexcept {
  Evidence seen{};
  const system::SpinGuard guard(g_cache.lock);
  if (!guard) return seen;
  seen.ceilings =
      g_cache.ceilings.get(now_ns, from, [&]() noexcept { return limit::read_ceilings(hook); });
  if (error == 0 || request.probe) return seen;
  const auto read = [&](auto read_limits) noexcept {
    session::CountedLimits limits{};
    read_limits(hook, limits);
    return limits;
  };
  seen.counted =
      error == EAGAIN
          ? g_cache.tasks.get(now_ns, from, [&] { return read(limit::read_task_limits); })
          : g_cache.mappings.get(now_ns, from, [&] { return read(limit::read_mapping_limits); });
  return seen;
}

void reset_evidence_after_fork() noexcept {
  g_cache.lock.unlock();
  g_cache.ceilings.time_ns = g_cache.tasks.time_ns = g_cache.mappings.time_ns = 0;
}

}  // namespace oomrec::recorder
