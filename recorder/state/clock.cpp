#include "recorder/state/clock.h"

#include "common/system/files.h"
#include "recorder/session/writer.h"
#include "recorder/state/callbacks.h"
#include "recorder/state/growth.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using session::g_session;

namespace {

// A library fills its reservation, and makes few requests meanwhile. Each may be the only one that
// sees what has been touched, so that one in 64 of what is sampled on average reads the clock.
void watch_reservations(ThreadState& thread) noexcept {
  constexpr std::uint64_t kStopsBetweenSamples = 64;
  const bool watches = g_state.ranges.usable_bytes() >= kReservedBytes;
  if (watches) thread.events_to_clock = 0;
  const std::uint64_t interval = g_state.interval_bytes.load(std::memory_order_relaxed);
  thread.sampler.stop_each(watches ? interval / kStopsBetweenSamples : 0);
}

}  // namespace

void read_clock(InHook hook, ThreadState& thread) noexcept {
  if (thread.reallocating) return;
  const std::uint64_t now = system::coarse_ns();
  thread.set_time(static_cast<std::uint32_t>((now - g_state.start_ns) / 1'000'000));
  choose_path(thread);
  if (thread.time_ms - thread.sums_flushed_ms >= kTickNs / 1'000'000) [[unlikely]] {
    thread.sums_flushed_ms = thread.time_ms;
    thread.sums.flush(hook, g_state.holders);
  }
  maybe_sample_growth(hook, thread, now);
  if (!exact()) watch_reservations(thread);
  const std::uint64_t last = g_session.header().last_tick_ns.load(std::memory_order_relaxed);
  if (now < last + kTickNs) [[likely]]
    return;
  g_callbacks.tick(hook, thread, now);
}

}  // namespace oomrec::recorder
