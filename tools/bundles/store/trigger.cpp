#include "tools/bundles/store/trigger.h"

#include "common/verdict/verdict.h"
#include "tools/deaths/ending.h"

namespace oomrec::tools::bundles {

using session::State;
using session::TableId;

bool last_refusal(const session::View& view, std::uint32_t& index, session::Failure& failure) {
  index = 0;
  session::Failure entry{};
  for (std::uint64_t i = 1; i < view.count(TableId::failures); ++i) {
    if (!view.read(TableId::failures, i, entry) || (entry.flags & session::kFailureProbe) != 0)
      continue;
    if (index != 0 && entry.last_ns.load() < failure.last_ns.load()) continue;
    index = static_cast<std::uint32_t>(i);
    view.read(TableId::failures, i, failure);
  }
  return index != 0;
}

bool is_told(const session::Failure& failure) {
  return failure.bundle != 0 && failure.last_ns.load() < failure.time_ns + deaths::kFollowsWithinNs;
}

State state_of(const session::View& view) { return static_cast<State>(view.header().state.load()); }

int crash_signal(const session::View& view) {
  const auto signal = view.header().crash.signal.load(std::memory_order_acquire);
  return state_of(view) == State::running ? static_cast<int>(signal) : 0;
}

bool crash_is_due(const session::View& view) {
  const session::Crash& crash = view.header().crash;
  return crash_signal(view) != 0 && crash.failure != 0 && verdict::follows_refusal(view.header()) &&
         (crash.flags & session::kCrashTold) == 0;
}

Trigger trigger_of(const session::Failure& failure) {
  const bool by_us = (failure.flags & session::kFailureRefused) != 0;
  return by_us ? Trigger::soft_limit : Trigger::allocation_failed;
}

Trigger trigger_of(const session::View& view) {
  if (crash_is_due(view)) return Trigger::crash;
  std::uint32_t index = 0;
  session::Failure failure{};
  if (!last_refusal(view, index, failure) || is_told(failure)) {
    return session::life_of(view) == session::Life::alive ? Trigger::request : Trigger::killed;
  }
  return trigger_of(failure);
}

}  // namespace oomrec::tools::bundles
