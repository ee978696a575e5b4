#include "recorder/failures/exit.h"

#include <signal.h>

#include "common/session/notable.h"
#include "common/system/files.h"
#include "common/system/syscalls.h"
#include "common/verdict/verdict.h"
#include "recorder/failures/bundle_scheduler.h"
#include "recorder/failures/exceptions.h"
#include "recorder/failures/failure_table.h"
#include "recorder/failures/failures.h"
#include "recorder/failures/pending_probe.h"
#include "recorder/failures/signal_handlers.h"
#include "recorder/helper/from_process.h"
#include "recorder/helper/standard_error.h"
#include "recorder/process/ended_processes.h"
#include "recorder/runtimes/php.h"
#include "recorder/runtimes/runtime_limit.h"
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

bool is_recorded() noexcept { return phase() == Phase::active && same_process(); }

// A request that failed shortly before is the better explanation: the runtime ran into it.
bool may_be_runtime_limit() noexcept { return is_recorded() && !has_failed_lately(); }

void report_exit_at_runtime_limit(InHook hook, int status) noexcept {
  if (status == 0 || !may_be_runtime_limit() || !record_limit_at_exit(hook, status)) return;
  bundle::Cause cause;
  cause.trigger = Trigger::exception;
  cause.outcome = OutcomeKind::exited;
  cause.outcome_value = status;
  write_bundle(hook, cause, {.last_chance = true, .deadline_ns = writing_deadline_ns()});
}

}  // namespace

void on_abort(InHook hook) noexcept {
  if (may_be_runtime_limit() && record_limit_at_abort(hook)) install_handlers(hook);
}

void on_php_bailout(InHook hook) noexcept {
  char message[160];
  if (!php_memory_error(hook, message) || !may_be_runtime_limit()) return;
  record_php_limit(hook, message);
  report_uncaught(hook, {});
  helper::finish(hook, bound_seconds());
  clear_runtime_limit(hook);
}

void on_exit(InHook hook, int status) noexcept {
  if (!is_recorded()) return;
  if (status != 0) promote_pending_probe(hook);
  report_last_failure(hook, status);
  report_exit_at_runtime_limit(hook, status);
  if (g_state.options.dump_at_exit && was_large()) dump(hook, verdict::kReasonAtExit);
  helper::finish(hook, static_cast<unsigned>(g_state.options.bundle_seconds));
  if (status != 0 && has_reported_uncaught())
    complete_outcome(hook, OutcomeKind::exited, status);
  else
    complete_outcome_at_end(hook, status, system::monotonic_ns());
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

namespace {

constinit std::atomic<bool> g_done{false};

// As the kernel would: the program's own handler must not run under the failing thread's locks.
[[noreturn]] void die_of_abort() noexcept {
  const system::KernelAction by_default;
  system::call(SYS_rt_sigaction, SIGABRT, &by_default, nullptr, system::kSignalMaskBytes);
  const std::uint64_t abort_alone = std::uint64_t{1} << (SIGABRT - 1);
  system::call(SYS_rt_sigprocmask, SIG_UNBLOCK, &abort_alone, nullptr, sizeof abort_alone);
  for (;;) system::call(SYS_tgkill, system::process_id(), system::thread_id(), SIGABRT);
}

[[noreturn]] void die_of_exit(InHook hook, int status) noexcept {
  on_exit(hook, status);
  for (;;) system::call(SYS_exit_group, status);
}

}  // namespace

void act_on_failure(InHook hook) noexcept {
  const Options& options = g_state.options;
  const bool has_command = options.on_oom_exec[0] != '\0';
  if ((!has_command && options.on_oom.what == OnOom::go_on) || system::is_sandboxed() ||
      g_done.exchange(true, std::memory_order_relaxed))
    return;
  const auto seconds = static_cast<unsigned>(options.bundle_seconds);
  helper::finish(hook, seconds);
  session::g_session.header().acted.store(1, std::memory_order_relaxed);
  if (has_command && !helper::run_from_process(hook, options.on_oom_exec, seconds) &&
      !options.quiet) {
    helper::write_stderr(
        hook,
        "oomrec: --on-oom-exec: the command was not started: it is longer than 8 KiB, or the "
        "system allows no further process\n");
  }
  switch (options.on_oom.what) {
    case OnOom::go_on:
      return;
    case OnOom::exit:
      die_of_exit(hook, options.on_oom.status);
    case OnOom::abort:
      complete_outcome(hook, OutcomeKind::signal, SIGABRT);
      die_of_abort();
  }
}

void reset_oom_action_after_fork(InHook) noexcept {
  g_done.store(false, std::memory_order_relaxed);
}

}  // namespace oomrec::recorder
