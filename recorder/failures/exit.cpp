#include "recorder/failures/exit.h"

#include "common/session/notable.h"
#include "common/system/files.h"
#include "common/verdict/verdict.h"
#include "recorder/failures/bundle_requests.h"
#include "recorder/failures/bundle_scheduler.h"
#include "recorder/failures/exceptions.h"
#include "recorder/failures/failures.h"
#include "recorder/failures/pending_probe.h"
#include "recorder/failures/runtime_limit.h"
#include "recorder/helper/from_process.h"
#include "recorder/process/ended_children.h"
#include "recorder/process/sent_signals.h"
#include "recorder/session/writer.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using session::g_session;

namespace {

// Whether the process used enough memory to be of interest.
bool was_large() noexcept {
  std::uint64_t peak = 0;
  for (std::size_t i = 0; i < kSpaceCount; ++i) {
    if (is_additive(static_cast<Space>(i)))
      peak += g_session.header().spaces[i].peak_bytes.load(std::memory_order_relaxed);
  }
  return peak >= session::kNotableBytes;
}

// Whether a rank fails without a failed request of its own: another rank's failure may be the
// cause.
bool failed_as_a_rank(const session::Header& header, int status) noexcept {
  return header.rank.known != 0 && status != 0 && header.failures_total == 0;
}

}  // namespace

void on_exit(InHook hook, int status) noexcept {
  if (phase() != Phase::active || !same_process()) return;
  if (status != 0) promote_pending_probe(hook);
  report_last_failure(hook, status);
  report_exit_at_runtime_limit(hook, status);
  if (g_state.options.dump_at_exit && was_large()) dump(hook, verdict::kReasonAtExit);
  helper::finish(hook, static_cast<unsigned>(g_state.options.bundle_seconds));
  if (status != 0 && has_reported_uncaught())
    complete_outcome(hook, OutcomeKind::exited, status);
  else
    complete_outcome_at_end(hook, status);
  session::Header& header = g_session.header();
  const std::uint64_t now = system::monotonic_ns();
  // Keep the session: `oomrec recover` decides later whether it shows a death by memory.
  const bool may_follow = lost_child_recently(header, now) || failed_as_a_rank(header, status) ||
                          header.told_realtime_ns != 0;
  if (may_follow) header.last_tick_ns.store(now, std::memory_order_relaxed);
  const bool explains_another = has_ended_a_large_process(hook);
  g_session.mark(hook, session::State::exited, status);
  if (last_failure_reported() && !may_follow && !explains_another) g_session.remove_file(hook);
}

}  // namespace oomrec::recorder
