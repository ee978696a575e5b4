#include "recorder/state/growth.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "common/limits/health.h"
#include "common/system/files.h"
#include "common/system/keep_largest.h"
#include "recorder/session/node_states.h"
#include "recorder/session/writer.h"
#include "recorder/stack/stack.h"
#include "recorder/state/counters.h"
#include "recorder/state/node_scope.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using session::g_node_states;
using session::g_session;

namespace {

// A sample each 10 ms on average. A program that was idle may have up to 16 of them sooner, so that
// each line that fills memory when it wakes up is sampled.
constexpr std::uint64_t kBetweenNs = 10'000'000, kLeastBetweenNs = 2'000'000;
constexpr std::uint64_t kSavedNs = 16 * kBetweenNs;
constexpr std::int64_t kNotableBytes = std::int64_t{1} << 20;

struct Growth {
  std::atomic<std::uint64_t> next_ns{0};
  std::atomic<bool> busy{false};    // guards all below
  std::uint64_t paid_until_ns = 0;  // by the samples so far
  std::int64_t resident_bytes = 0;  // 0: not read yet
  std::int64_t live_bytes = 0;
  std::int64_t pending_bytes = 0;  // not notable yet
  std::uint32_t reserving = 0;     // on_reservation()
  // The grower of the latest sample in a thread that runs no Python, while a line of Python waited
  // for it (recorder/python/waiting.h); 0: there was none.
  std::uint32_t waited_for = 0;
  std::uint64_t processor_ns = 0;  // of the whole process at the last sample
  live::Unexplained unexplained;
  live::GrowthSamples samples;
};
constinit Growth g_growth;

bool enter() noexcept { return !g_growth.busy.exchange(true, std::memory_order_acquire); }
void leave() noexcept { g_growth.busy.store(false, std::memory_order_release); }

// The largest, for readers after a kill.
void publish_samples() noexcept {
  using Sample = live::GrowthSamples::Sample;
  Sample largest[session::kGrowthSamples] = {};
  std::uint32_t count = 0;
  for (const Sample& one : g_growth.samples.all())
    system::keep_largest(
        std::span<Sample>{largest}, count, one,
        [](const Sample& a, const Sample& b) noexcept { return a.bytes > b.bytes; });
  for (std::size_t at = 0; at < session::kGrowthSamples; ++at)
    g_session.header().growth[at].set(largest[at].grower, largest[at].bytes);
}

// Whether other threads have done most of the work since the last sample.
bool did_others_work(ThreadState& thread) noexcept {
  const std::uint64_t process = system::processor_ns_of_process(), own = system::processor_ns();
  const std::uint64_t by_all = process - std::exchange(g_growth.processor_ns, process);
  const std::uint64_t by_this = own - std::exchange(thread.processor_ns, own);
  return by_this < by_all / 2;
}

// The stack that has made reservations grow since the last sample: that of this thread. But a
// library's threads make few events. What they touched while a line of Python waited for them is
// often seen in that thread's next event, which is another line's.
std::uint32_t grower_now(InHook hook, ThreadState& thread) noexcept {
  const bool by_others = did_others_work(thread);
  const std::uint32_t grower = running_grower(hook, thread);
  if (thread.stacks.python.count != 0)
    return by_others && g_growth.waited_for != 0 ? g_growth.waited_for : grower;
  if (thread.stacks.is_waited_for) g_growth.waited_for = grower;
  return grower;
}

// Drops the sample if the tables have no room for the stack.
void add_sample(InHook hook, ThreadState& thread, std::uint32_t reserving,
                std::uint64_t bytes) noexcept {
  NodeScope nodes{hook, &thread};
  const std::uint32_t grower = reserving != 0 ? reserving : grower_now(hook, thread);
  if (grower != 0) g_growth.samples.add(grower, bytes);
}

void sample(InHook hook, ThreadState* thread) noexcept {
  const std::uint32_t reserving = std::exchange(g_growth.reserving, 0);
  const auto resident = static_cast<std::int64_t>(limit::read_anonymous_bytes(hook));
  if (resident == 0) return;
  const std::int64_t live = live_bytes(nullptr);
  if (g_growth.resident_bytes != 0)
    g_growth.pending_bytes += g_growth.unexplained.next(
        resident - g_growth.resident_bytes, live - g_growth.live_bytes, system::coarse_ns());
  g_growth.resident_bytes = resident;
  g_growth.live_bytes = live;
  const std::int64_t growth = g_growth.pending_bytes;
  if (growth <= -kNotableBytes) {
    g_growth.samples.shrink(static_cast<std::uint64_t>(-growth));
  } else if (growth < kNotableBytes || thread == nullptr) {
    return;
  } else {
    add_sample(hook, *thread, reserving, static_cast<std::uint64_t>(growth));
  }
  g_growth.pending_bytes = 0;
  publish_samples();
}

}  // namespace

std::uint32_t running_grower(InHook hook, ThreadState& thread) noexcept {
  const std::uint32_t node =
      stack::capture(hook, thread.stacks, thread.root(hook), stack::Waiting::included);
  return g_state.holders.find_or_add(hook, node, Space::map, Api::mmap, session::kHolderEstimated);
}

void maybe_sample_growth(InHook hook, ThreadState& thread, std::uint64_t now_ns) noexcept {
  if (g_state.ranges.usable_bytes() < kReservedBytes) [[likely]]
    return;
  if (now_ns < g_growth.next_ns.load(std::memory_order_relaxed)) return;
  if (system::is_sandboxed() || !enter()) return;
  g_growth.paid_until_ns = std::max(g_growth.paid_until_ns, now_ns) + kBetweenNs;
  const std::uint64_t saved = std::min(kSavedNs, g_growth.paid_until_ns);
  g_growth.next_ns.store(std::max(now_ns + kLeastBetweenNs, g_growth.paid_until_ns - saved),
                         std::memory_order_relaxed);
  sample(hook, &thread);
  leave();
}

void on_reservation(InHook hook, ThreadState& thread, std::uint32_t reserving) noexcept {
  if (g_state.ranges.usable_bytes() < kReservedBytes || system::is_sandboxed() || !enter()) return;
  sample(hook, &thread);
  g_growth.reserving = reserving;
  g_growth.next_ns.store(0, std::memory_order_relaxed);
  leave();
}

GrowthOfLook::GrowthOfLook(InHook hook, ThreadState* thread) noexcept : holds_(enter()) {
  if (holds_) sample(hook, thread);
}

GrowthOfLook::~GrowthOfLook() {
  if (holds_) leave();
}

std::span<const live::GrowthSamples::Sample> GrowthOfLook::all() const noexcept {
  if (!holds_) return {};
  return g_growth.samples.all();
}

void GrowthOfLook::end() noexcept {
  if (!holds_) return;
  g_growth.live_bytes = live_bytes(nullptr);
  g_growth.pending_bytes = 0;
  g_growth.samples.clear();
  publish_samples();
}

bool claim_growth() noexcept {
  if (!enter()) return false;
  for (const live::GrowthSamples::Sample& one : g_growth.samples.all())
    g_node_states.touch(g_session.holders.at(one.grower).node);
  if (g_growth.waited_for != 0) g_node_states.touch(g_session.holders.at(g_growth.waited_for).node);
  leave();
  return true;
}

void reset_growth() noexcept {
  g_growth.samples.clear();
  g_growth.unexplained = {};
  g_growth.reserving = g_growth.waited_for = 0;
  g_growth.next_ns.store(0, std::memory_order_relaxed);
  g_growth.paid_until_ns = 0;
  g_growth.resident_bytes = g_growth.live_bytes = g_growth.pending_bytes = 0;
  leave();
}

}  // namespace oomrec::recorder
