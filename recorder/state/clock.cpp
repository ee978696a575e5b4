#include "recorder/state/clock.h"

#include "common/system/files.h"
#include "recorder/session/writer.h"
#include "recorder/state/callbacks.h"
#include "recorder/state/growth.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using session::g_session;

void read_clock(InHook hook, ThreadState& thread) noexcept {
  if (thread.reallocating) return;
  const std::uint64_t now = system::coarse_ns();
  thread.set_time(static_cast<std::uint32_t>((now - g_state.start_ns) / 1'000'000));
  choose_path(thread);
  if (thread.time_ms - thread.sums_settled_ms >= kTickNs / 1'000'000) [[unlikely]] {
    thread.sums_settled_ms = thread.time_ms;
    thread.sums.settle(hook, g_state.holders);
  }
  maybe_sample_growth(hook, thread, now);
  // A library's threads make few events, and each may be the only one that sees what they touch.
  if (!exact() && g_state.ranges.usable_bytes() >= kReservedBytes) thread.events_to_clock = 0;
  const std::uint64_t last = g_session.header().last_tick_ns.load(std::memory_order_relaxed);
  if (now < last + kTickNs) [[likely]]
    return;
  g_callbacks.tick(hook, thread, now);
}

}  // namespace oomrec::recorder
