#include "recorder/state/counters.h"

#include "recorder/state/callbacks.h"
#include "recorder/state/clock.h"
#include "recorder/state/watermark.h"

namespace oomrec::recorder {

using session::g_session;
using session::SpaceTotals;

std::int64_t publish_quietly(ThreadState& thread, Space space) noexcept {
  const auto at = static_cast<std::size_t>(space);
  const std::int64_t share = thread.unpublished[at].load(std::memory_order_relaxed);
  add_own(thread.unpublished[at], -share);  // not a store: a signal handler may just have added
  SpaceTotals& totals = g_session.header().spaces[at];
  const std::int64_t live =
      totals.published_live_bytes.fetch_add(share, std::memory_order_relaxed) + share;
  if (share > 0) {
    raise_peak(totals, live);
    update_watermark(thread);
  }
  return share;
}

void publish(InHook hook, ThreadState& thread, Space space) noexcept {
  if (phase() != Phase::active) return;  // a signal handler has forked inside the hook
  const std::int64_t share = publish_quietly(thread, space);
  read_clock(hook, thread);
  g_callbacks.published(hook, share);
}

void raise_peak(SpaceTotals& totals, std::int64_t live) noexcept {
  if (live <= 0) return;
  const auto bytes = static_cast<std::uint64_t>(live);
  raise_to(totals.peak_bytes, bytes);
  std::uint64_t step = totals.peak_step_bytes.load(std::memory_order_relaxed);
  while (bytes > step + step / 100) {
    if (totals.peak_step_bytes.compare_exchange_weak(step, bytes, std::memory_order_relaxed)) {
      totals.peak_epoch.fetch_add(1, std::memory_order_release);
      return;
    }
  }
}

void count_unlaned(Space space, std::uint64_t allocated_bytes, std::uint64_t allocated_count,
                   std::uint64_t freed_count, std::uint64_t usable_allocated_bytes,
                   std::uint64_t usable_freed_bytes) noexcept {
  add_delta(
      g_state.unlaned[static_cast<std::size_t>(space)],
      {allocated_bytes, allocated_count, freed_count, usable_allocated_bytes, usable_freed_bytes},
      [](auto& word, std::uint64_t by) noexcept { add_shared(word, by); });
  std::atomic_thread_fence(std::memory_order_release);
  add_shared(g_state.unlaned_events, std::uint64_t{1});
}

void fold_unlaned(InHook hook, ThreadState& thread) noexcept {
  if (g_state.unlaned_events.exchange(0, std::memory_order_acquire) == 0) return;
  for (std::size_t at = 0; at < kSpaceCount; ++at) {
    session::SpaceCounters& from = g_state.unlaned[at];
    const auto take = [](auto& word) noexcept {
      return word.exchange(0, std::memory_order_relaxed);
    };
    const Delta delta{take(from.allocated_bytes), take(from.allocated_count),
                      take(from.freed_count), take(from.usable_allocated_bytes),
                      take(from.usable_freed_bytes)};
    count(hook, &thread, static_cast<Space>(at), delta);
  }
}

std::int64_t live_bytes(const ThreadState* thread) noexcept {
  std::int64_t live = 0;
  for (const Space space : {Space::heap, Space::map}) {
    const auto at = static_cast<std::size_t>(space);
    if (phase() == Phase::active) {
      live += g_session.header().spaces[at].published_live_bytes.load(std::memory_order_relaxed);
    }
    if (thread != nullptr) live += thread->unpublished[at].load(std::memory_order_relaxed);
    const session::SpaceCounters& unlaned = g_state.unlaned[at];
    live +=
        static_cast<std::int64_t>(unlaned.usable_allocated_bytes.load(std::memory_order_relaxed) -
                                  unlaned.usable_freed_bytes.load(std::memory_order_relaxed));
  }
  return live;
}

}  // namespace oomrec::recorder
