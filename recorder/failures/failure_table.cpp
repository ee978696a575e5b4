#include "recorder/failures/failure_table.h"

#include "common/system/files.h"
#include "common/system/mutex.h"
#include "recorder/devices/registry.h"
#include "recorder/failures/evidence.h"
#include "recorder/fault_injection/fault_injection.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using session::Failure;
using session::g_session;

namespace {

constexpr std::uint32_t kSlots = 1024;  // a power of two
constexpr std::uint32_t kMostKinds = kSlots / 2;
constexpr std::uint32_t kMostProbes = kMostKinds / 2;  // of these

struct Slot {
  std::uint32_t node;
  std::uint32_t entry;  // in `failures`; 0: free
  bool recovered;       // a later request by the same stack was served
};

struct FailureTable {
  system::Mutex lock;
  Slot slots[kSlots] = {};
  std::uint32_t kinds = 0;   // slots in use
  std::uint32_t probes = 0;  // of these
  FailedRequest last;
  FailedRequest traced;  // the latest whose call is known: no after-shock
  FailedCall traced_call{};
};
constinit FailureTable g_failure_table;

std::uint8_t flags_of(const FailedRequest& failed) noexcept {
  const unsigned probe = failed.request.probe ? session::kFailureProbe : 0;
  const unsigned injected = failed.request.rule != 0 ? session::kFailureInjected : 0;
  const unsigned refused =
      failed.by == FailedBy::recorder && injected == 0 ? session::kFailureByRecorder : 0;
  const unsigned commit = failed.request.commits ? session::kFailureCommit : 0;
  const unsigned unserved = failed.unserved ? session::kFailureUnserved : 0;
  return static_cast<std::uint8_t>(probe | injected | refused | commit | unserved);
}

bool same_kind(const Failure& failure, const FailedRequest& failed) noexcept {
  constexpr std::uint8_t kKinds = session::kFailureProbe | session::kFailureInjected;
  return failure.node == failed.node &&
         failure.api == static_cast<std::uint16_t>(failed.request.api) &&
         failure.space == static_cast<std::uint8_t>(failed.request.space) &&
         failure.device.device == failed.request.device &&
         (failure.flags & kKinds) == (flags_of(failed) & kKinds);
}

// The slot of this kind of failure; free where entry is 0.
Slot& slot_of(const FailedRequest& failed) noexcept {
  for (auto at = static_cast<std::uint32_t>(session::mix(failed.node));; ++at) {
    Slot& slot = g_failure_table.slots[at % kSlots];
    if (slot.entry == 0) return slot;
    if (slot.node == failed.node && same_kind(g_session.failures.at(slot.entry), failed))
      return slot;
  }
}

std::uint32_t append_entry(InHook hook, const FailedRequest& failed, EvidenceFrom from) noexcept {
  const bool on_host = !is_device_space(failed.request.space);
  const int error = failed.by == FailedBy::recorder || !on_host ? 0 : failed.error;
  const Evidence evidence = read_evidence(hook, failed.request, error, failed.time_ns, from);
  const limit::Ceilings& seen = evidence.ceilings;
  const session::StringId rule = rule_text(hook, failed.request.rule);
  std::uint32_t entry = 0;
  const bool entered = g_session.failures.append(hook, entry, [&](Failure& failure) noexcept {
    failure.time_ns = failed.time_ns;
    failure.realtime_ns = system::realtime_ns();
    failure.bytes = failed.request.bytes;
    failure.node = failed.node;
    failure.thread = failed.thread;
    failure.api = static_cast<std::uint16_t>(failed.request.api);
    failure.space = static_cast<std::uint8_t>(failed.request.space);
    failure.flags = flags_of(failed);
    failure.error = failed.error;
    failure.live_bytes = failed.live_bytes < 0 ? 0 : static_cast<std::uint64_t>(failed.live_bytes);
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
    failure.last_ns.store(failed.time_ns, std::memory_order_relaxed);
    failure.counted = evidence.counted;
    failure.pools = evidence.pools;
    failure.rule = rule;
    failure.device = device_evidence(failed.request.device, failed.time_ns);
  });
  if (!entered) drop();
  if (entered) g_session.keep_thread_entry(failed.thread);
  return entered ? entry : 0;
}

// Adds a kind that is not in the table, unless the table is full.
void add_kind(InHook hook, FailedRequest& failed, EvidenceFrom from, Slot& slot) noexcept {
  FailureTable& table = g_failure_table;
  const bool is_probe = failed.request.probe;
  if (table.kinds == kMostKinds || (is_probe && table.probes == kMostProbes)) return;
  failed.entry = append_entry(hook, failed, from);
  if (failed.entry == 0) return;
  slot = {failed.node, failed.entry, false};
  ++table.kinds;
  table.probes += is_probe;
}

}  // namespace

RecordedFailure record_failure(InHook hook, FailedRequest& failed, EvidenceFrom from) noexcept {
  const system::MutexGuard guard(g_failure_table.lock);
  if (!guard) return {};
  Slot& slot = slot_of(failed);
  const bool first = slot.entry == 0;
  if (!first) {
    Failure& recorded = g_session.failures.at(slot.entry);
    recorded.repeats.fetch_add(1, std::memory_order_relaxed);
    recorded.last_ns.store(failed.time_ns, std::memory_order_relaxed);
    failed.entry = slot.entry;
    failed.recovered_before = slot.recovered;
  } else {
    add_kind(hook, failed, from, slot);
  }
  if (!failed.request.probe) g_failure_table.last = failed;
  return {failed.entry, first};
}

void ensure_entry(InHook hook, FailedRequest& failed) noexcept {
  if (failed.entry == 0) failed.entry = append_entry(hook, failed, EvidenceFrom::now);
}

void set_bundle(FailedRequest& failed, std::uint32_t bundle) noexcept {
  failed.bundle = bundle;
  const system::MutexGuard guard(g_failure_table.lock);
  if (guard && g_failure_table.last.time_ns == failed.time_ns) g_failure_table.last.bundle = bundle;
}

void add_new_entry(InHook hook, FailedRequest& failed) noexcept {
  const std::uint32_t entry = append_entry(hook, failed, EvidenceFrom::now);
  const system::MutexGuard guard(g_failure_table.lock);
  if (entry == 0 || !guard) return;
  Slot& slot = slot_of(failed);
  const bool is_new = slot.entry == 0;
  if (!is_new || g_failure_table.kinds < kMostKinds) slot = {failed.node, entry, false};
  if (is_new && g_failure_table.kinds < kMostKinds) ++g_failure_table.kinds;
  failed.entry = entry;
  failed.recovered_before = false;
  if (g_failure_table.last.time_ns == failed.time_ns) g_failure_table.last = failed;
}

std::uint32_t entry_of_last(InHook hook, const FailedRequest& last) noexcept {
  if (last.entry == 0) return append_entry(hook, last, EvidenceFrom::now);
  const std::uint32_t repeats =
      g_session.failures.at(last.entry).repeats.load(std::memory_order_relaxed);
  const bool reported =
      g_session.failures.at(last.entry).bundle.load(std::memory_order_relaxed) != 0;
  if (!reported && repeats == 0) return last.entry;
  const std::uint32_t entry = append_entry(hook, last, EvidenceFrom::now);
  if (entry == 0) return last.entry;
  g_session.failures.at(entry).repeats.store(repeats, std::memory_order_relaxed);
  return entry;
}

void count_as_failure(InHook, FailedRequest& probe) noexcept {
  const system::MutexGuard guard(g_failure_table.lock);
  if (!guard) return;
  probe.request.probe = false;
  probe.unserved = true;
  auto& header = g_session.header();
  header.probes_total.fetch_sub(1, std::memory_order_relaxed);
  probe.number =
      1 + static_cast<std::uint32_t>(header.failures_total.fetch_add(1, std::memory_order_relaxed));
  if (probe.entry != 0) g_session.failures.at(probe.entry).flags = flags_of(probe);
  g_failure_table.last = probe;
}

void resolve(FailedRequest& failed) noexcept {
  failed.stage = FailureStage::resolved;
  const system::MutexGuard guard(g_failure_table.lock);
  if (!guard) return;
  if (g_failure_table.last.time_ns == failed.time_ns)
    g_failure_table.last.stage = FailureStage::resolved;
  Slot& slot = slot_of(failed);
  if (slot.entry != 0) slot.recovered = true;
}

void resolve_kind(std::uint32_t entry) noexcept {
  const system::MutexGuard guard(g_failure_table.lock);
  if (!guard) return;
  for (Slot& slot : g_failure_table.slots)
    if (slot.entry == entry) slot.recovered = true;
}

void keep_call(const FailedRequest& failed, const FailedCall& call) noexcept {
  const system::MutexGuard guard(g_failure_table.lock);
  if (!guard) return;
  g_failure_table.traced = failed;
  g_failure_table.traced_call = call;
}

bool last_call(FailedRequest& failed, FailedCall& call) noexcept {
  const system::MutexGuard guard(g_failure_table.lock);
  if (!guard || g_failure_table.traced.time_ns == 0) return false;
  failed = g_failure_table.traced;
  call = g_failure_table.traced_call;
  return true;
}

FailedRequest last_failure() noexcept {
  const system::MutexGuard guard(g_failure_table.lock);
  return guard ? g_failure_table.last : FailedRequest{};
}

bool has_failed_lately() noexcept {
  const std::uint64_t last_ns = last_failure().time_ns;
  return last_ns != 0 && last_ns + kRecoveredNs > system::monotonic_ns();
}

bool claim_newest(std::uint32_t since, FailedRequest& newest) noexcept {
  const system::MutexGuard guard(g_failure_table.lock);
  if (!guard) return false;
  FailedRequest& last = g_failure_table.last;
  if (last.time_ns == 0 || last.number <= since || last.raised ||
      last.stage == FailureStage::resolved || last.time_ns + kRecoveredNs < system::monotonic_ns())
    return false;
  newest = last;
  last.raised = true;
  return true;
}

void mark_raised(const FailedRequest& failed) noexcept {
  const system::MutexGuard guard(g_failure_table.lock);
  if (guard && g_failure_table.last.number == failed.number) g_failure_table.last.raised = true;
}

bool failed_by_own_limit(const FailedRequest& failed) noexcept {
  return (flags_of(failed) & session::kFailureByRecorder) != 0;
}

void reset_failure_table_after_fork(InHook) noexcept {
  g_failure_table.lock.unlock();
  reset_evidence_after_fork();
  for (Slot& slot : g_failure_table.slots) slot = {};
  g_failure_table.kinds = g_failure_table.probes = 0;
  g_failure_table.last = {};
  g_failure_table.traced = {};
}

}  // namespace oomrec::recorder
