#include "tools/bundles/store/trigger.h"

#include "common/verdict/verdict.h"
#include "tools/deaths/ending.h"

namespace oomrec::tools::bundles {

using session::State;
using session::TableId;

namespace {

FailedRequest failed_request(std::uint32_t index, const session::Failure& failure) {
  const bool recovered = failure.last_ns.load() >= failure.time_ns + deaths::kFollowsWithinNs;
  const bool by_soft_limit = (failure.flags & session::kFailureByRecorder) != 0;
  return {index, failure.last_ns, failure.bundle != 0 && !recovered,
          by_soft_limit ? Trigger::soft_limit : Trigger::allocation_failed};
}

// The failure that the bundle of this after-shock reports.
std::uint32_t root_of(const session::View& view, std::uint32_t aftershock) {
  session::Failure entry{};
  view.read(TableId::failures, aftershock, entry);
  const std::uint32_t bundle = entry.bundle;
  for (std::uint64_t i = 1; i < view.count(TableId::failures); ++i)
    if (view.read(TableId::failures, i, entry) && entry.bundle == bundle &&
        (entry.flags & session::kFailureAftershock) == 0)
      return static_cast<std::uint32_t>(i);
  return aftershock;
}

bool is_aftershock(const session::View& view, std::uint32_t index) {
  session::Failure entry{};
  return view.read(TableId::failures, index, entry) &&
         (entry.flags & session::kFailureAftershock) != 0;
}

}  // namespace

std::optional<FailedRequest> last_failed_request(const session::View& view) {
  std::optional<FailedRequest> last;
  session::Failure entry{};
  for (std::uint64_t i = 1; i < view.count(TableId::failures); ++i) {
    if (!view.read(TableId::failures, i, entry) || (entry.flags & session::kFailureProbe) != 0)
      continue;
    if (!last || entry.last_ns.load() >= last->last_ns)
      last = failed_request(static_cast<std::uint32_t>(i), entry);
  }
  if (last && is_aftershock(view, last->index)) last->index = root_of(view, last->index);
  return last;
}

State state_of(const session::View& view) { return static_cast<State>(view.header().state.load()); }

int crash_signal(const session::View& view) {
  const auto signal = view.header().crash.signal.load(std::memory_order_acquire);
  return state_of(view) == State::running ? static_cast<int>(signal) : 0;
}

bool crash_is_due(const session::View& view) {
  const session::Crash& crash = view.header().crash;
  return crash_signal(view) != 0 && crash.failure != 0 && verdict::follows_failure(view) &&
         (crash.flags & session::kCrashInBundle) == 0;
}

Trigger trigger_of(const session::View& view) {
  if (crash_is_due(view)) return Trigger::crash;
  const std::optional<FailedRequest> failed = last_failed_request(view);
  if (failed && !failed->in_bundle) return failed->trigger;
  return session::life_of(view) == session::Life::alive ? Trigger::request : Trigger::killed;
}

}  // namespace oomrec::tools::bundles
