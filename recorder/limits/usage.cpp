#include "recorder/limits/usage.h"

#include <algorithm>

#include "common/session/view.h"
#include "recorder/limits/near_limit.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using session::g_session;

bool read_usage(InHook hook, Usage& usage) noexcept {
  usage = {};
  if (phase() != Phase::active) return false;
  const session::View view = g_session.view();
  for (std::size_t at = 0; at < kSpaceCount; ++at) {
    const auto space = static_cast<Space>(at);
    const session::View::Totals totals = view.totals(space);
    const session::SpaceTotals& published = g_session.header().spaces[at];
    const std::uint64_t live =
        totals.live_bytes < 0 ? 0 : static_cast<std::uint64_t>(totals.live_bytes);
    const std::uint64_t peak = std::max(published.peak_bytes.load(std::memory_order_relaxed), live);
    if (peak == 0 && totals.allocated_count == 0) continue;
    usage.space[usage.spaces++] = {
        space, live, peak, totals.allocated_bytes,
        totals.live_count < 0 ? 0 : static_cast<std::uint64_t>(totals.live_count)};
    if (space != Space::heap && space != Space::map) continue;
    usage.live_bytes += live;
    usage.peak_bytes += peak;
  }
  usage.limit = sample_nearest(hook);
  usage.rss_bytes = g_session.header().health.rss_bytes.load(std::memory_order_relaxed);
  return true;
}

}  // namespace oomrec::recorder
