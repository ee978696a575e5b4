#include "recorder/state/clock.h"

#include "common/system/files.h"
#include "recorder/session/writer.h"
#include "recorder/state/callbacks.h"
#include "recorder/state/growth.h"

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
  const std::uint64_t last = g_session.header().last_tick_ns.load(std::memory_order_relaxed);
  if (now < last + kTickNs) [[likely]]
    return;
  g_callbacks.tick(hook, thread, now);
}

}  // namespace oomrec::recorder
