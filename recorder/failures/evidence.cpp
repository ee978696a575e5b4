#include "recorder/failures/evidence.h"

#include <cerrno>

#include "common/limits/counted_limits.h"
#include "common/system/spin_lock.h"

namespace oomrec::recorder {
namespace {

constexpr std::uint64_t kKeptNs = 100'000'000;

template <class Value>
struct Kept {
  Value value;
  std::uint64_t time_ns;

  template <class Read>
  const Value& get(std::uint64_t now_ns, bool fresh, Read read) noexcept {
    if (fresh || time_ns == 0 || now_ns - time_ns > kKeptNs) {
      value = read();
      time_ns = now_ns;
    }
    return value;
  }
};

struct KeptEvidence {
  system::SpinLock lock;
  Kept<limit::Ceilings> ceilings;
  Kept<session::CountedLimits> tasks, mappings;
};
constinit KeptEvidence g_kept{};

}  // namespace

Evidence read_evidence(InHook hook, const Request& request, int error, std::uint64_t now_ns,
                       bool fresh) noexcept {
  Evidence seen{};
  const system::SpinGuard guard(g_kept.lock);
  if (!guard) return seen;
  seen.ceilings =
      g_kept.ceilings.get(now_ns, fresh, [&]() noexcept { return limit::read_ceilings(hook); });
  if (error == 0 || request.probe) return seen;
  const auto read = [&](auto read_limits) noexcept {
    session::CountedLimits limits{};
    read_limits(hook, limits);
    return limits;
  };
  seen.counted =
      error == EAGAIN
          ? g_kept.tasks.get(now_ns, fresh, [&] { return read(limit::read_task_limits); })
          : g_kept.mappings.get(now_ns, fresh, [&] { return read(limit::read_mapping_limits); });
  return seen;
}

void forget_evidence() noexcept {
  g_kept.lock.unlock();
  g_kept.ceilings.time_ns = g_kept.tasks.time_ns = g_kept.mappings.time_ns = 0;
}

}  // namespace oomrec::recorder
