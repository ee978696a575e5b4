#include "recorder/failures/failure_table.h"

#include "common/system/files.h"
#include "common/system/spin_lock.h"
#include "recorder/devices/figures.h"
#include "recorder/failures/evidence.h"
#include "recorder/fault_injection/fault_injection.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using session::Failure;
using session::g_session;

namespace {

constexpr std::uint32_t kKnown = 1024;  // places for known refusals: a power of two
constexpr std::uint32_t kMostEntries = kKnown / 2;

struct Known {
  std::uint32_t node;
  std::uint32_t entry;  // in `failures`; 0: free
  bool had;             // the program had what it wanted, later
};

struct Refusals {
  system::SpinLock lock;
  Known known[kKnown] = {};
  std::uint32_t entries = 0;
  Refusal last;
};
constinit Refusals g_refusals;

std::uint8_t flags_of(const Refusal& refusal) noexcept {
  const unsigned probe = refusal.request.probe ? session::kFailureProbe : 0;
  const unsigned injected = refusal.request.rule != 0 ? session::kFailureInjected : 0;
  const unsigned refused = refusal.by_us && injected == 0 ? session::kFailureRefused : 0;
  return static_cast<std::uint8_t>(probe | injected | refused);
}

bool same_kind(const Failure& failure, const Refusal& refusal) noexcept {
  constexpr std::uint8_t kKinds = session::kFailureProbe | session::kFailureInjected;
  return failure.node == refusal.node &&
         failure.api == static_cast<std::uint16_t>(refusal.request.api) &&
         failure.space == static_cast<std::uint8_t>(refusal.request.space) &&
         failure.device.device == refusal.request.device &&
         (failure.flags & kKinds) == (flags_of(refusal) & kKinds);
}

// The place of this refusal among the known ones: taken, or free for it.
Known& place_of(const Refusal& refusal) noexcept {
  for (auto at = static_cast<std::uint32_t>(live::mix(refusal.node));; ++at) {
    Known& place = g_refusals.known[at % kKnown];
    if (place.entry == 0) return place;
    if (place.node == refusal.node && same_kind(g_session.failures.at(place.entry), refusal))
      return place;
  }
}

std::uint32_t enter(InHook hook, const Refusal& refusal, bool fresh) noexcept {
  const bool on_host = !is_device_space(refusal.request.space);
  const int error = refusal.by_us || !on_host ? 0 : refusal.error;
  const Evidence evidence = read_evidence(hook, refusal.request, error, refusal.time_ns, fresh);
  const limit::Ceilings& seen = evidence.ceilings;
  const session::StringId rule = rule_text(hook, refusal.request.rule);
  std::uint32_t entry = 0;
  const bool entered = g_session.failures.append(hook, entry, [&](Failure& failure) noexcept {
    failure.time_ns = refusal.time_ns;
    failure.realtime_ns = system::realtime_ns();
    failure.bytes = refusal.request.bytes;
    failure.node = refusal.node;
    failure.thread = refusal.thread;
    failure.api = static_cast<std::uint16_t>(refusal.request.api);
    failure.space = static_cast<std::uint8_t>(refusal.request.space);
    failure.flags = flags_of(refusal);
    failure.error = refusal.error;
    failure.live_bytes =
        refusal.live_bytes < 0 ? 0 : static_cast<std::uint64_t>(refusal.live_bytes);
    failure.soft_limit_bytes =
        g_state.limit.bytes() == 0 ? session::kUnlimited : g_state.limit.bytes();
    failure.vm_bytes = seen.vm_bytes;
    failure.rlimit_as_bytes = seen.rlimit_as_bytes;
    failure.data_bytes = seen.data_bytes;
    failure.rlimit_data_bytes = seen.rlimit_data_bytes;
    failure.rss_bytes = seen.rss_bytes;
    failure.ram_bytes = seen.ram_bytes;
    failure.swap_bytes = seen.swap_bytes;
    failure.cgroup_used_bytes = seen.cgroup_used_bytes;
    failure.cgroup_limit_bytes = seen.cgroup_limit_bytes;
    failure.last_ns.store(refusal.time_ns, std::memory_order_relaxed);
    failure.counted = evidence.counted;
    failure.rule = rule;
    failure.device = device_evidence(refusal.request.device, refusal.time_ns);
  });
  if (!entered) drop();
  return entered ? entry : 0;
}

}  // namespace

std::uint32_t remember(InHook hook, Refusal& refusal, bool fresh, bool& first) noexcept {
  const system::SpinGuard guard(g_refusals.lock);
  if (!guard) return 0;
  Known& place = place_of(refusal);
  first = place.entry == 0;
  if (!first) {
    Failure& known = g_session.failures.at(place.entry);
    known.repeats.fetch_add(1, std::memory_order_relaxed);
    known.last_ns.store(refusal.time_ns, std::memory_order_relaxed);
    refusal.entry = place.entry;
    refusal.had_before = place.had;
  } else if (g_refusals.entries < kMostEntries) {
    refusal.entry = enter(hook, refusal, fresh);
    if (refusal.entry != 0) {
      place = {refusal.node, refusal.entry, false};
      ++g_refusals.entries;
    }
  }
  if (!refusal.request.probe) g_refusals.last = refusal;
  return refusal.entry;
}

void enter_unknown(InHook hook, Refusal& refusal) noexcept {
  if (refusal.entry == 0) refusal.entry = enter(hook, refusal, true);
}

void enter_anew(InHook hook, Refusal& refusal) noexcept {
  const std::uint32_t entry = enter(hook, refusal, true);
  const system::SpinGuard guard(g_refusals.lock);
  if (entry == 0 || !guard) return;
  place_of(refusal) = {refusal.node, entry, false};
  refusal.entry = entry;
  refusal.had_before = false;
  if (g_refusals.last.time_ns == refusal.time_ns) g_refusals.last = refusal;
}

std::uint32_t enter_last(InHook hook, const Refusal& last, bool told) noexcept {
  if (last.entry == 0) return enter(hook, last, true);
  const std::uint32_t repeats =
      g_session.failures.at(last.entry).repeats.load(std::memory_order_relaxed);
  if (!told && repeats == 0) return last.entry;
  const std::uint32_t entry = enter(hook, last, true);
  if (entry == 0) return last.entry;
  g_session.failures.at(entry).repeats.store(repeats, std::memory_order_relaxed);
  return entry;
}

void settle(Refusal& refusal) noexcept {
  refusal.settled = true;
  const system::SpinGuard guard(g_refusals.lock);
  if (!guard) return;
  if (g_refusals.last.time_ns == refusal.time_ns) g_refusals.last.settled = true;
  Known& place = place_of(refusal);
  if (place.entry != 0) place.had = true;
}

Refusal last_refusal() noexcept {
  const system::SpinGuard guard(g_refusals.lock);
  return guard ? g_refusals.last : Refusal{};
}

bool take_newest(std::uint32_t since, Refusal& newest) noexcept {
  const system::SpinGuard guard(g_refusals.lock);
  if (!guard) return false;
  Refusal& last = g_refusals.last;
  if (last.time_ns == 0 || last.number <= since || last.raised || last.settled ||
      last.time_ns + kRecoveredNs < system::monotonic_ns())
    return false;
  newest = last;
  last.raised = true;
  return true;
}

void note_raised(const Refusal& refusal) noexcept {
  const system::SpinGuard guard(g_refusals.lock);
  if (guard && g_refusals.last.number == refusal.number) g_refusals.last.raised = true;
}

bool refused_by_limit(const Refusal& refusal) noexcept {
  return (flags_of(refusal) & session::kFailureRefused) != 0;
}

void forget_known_refusals(InHook) noexcept {
  g_refusals.lock.unlock();
  forget_evidence();
  for (Known& place : g_refusals.known) place = {};
  g_refusals.entries = 0;
  g_refusals.last = {};
}

}  // namespace oomrec::recorder
