#include "recorder/failures/oom_action.h"

#include <signal.h>

#include "common/system/files.h"
#include "common/system/signal_action.h"
#include "common/system/syscalls.h"
#include "recorder/failures/bundle_scheduler.h"
#include "recorder/failures/exit.h"
#include "recorder/failures/signal_handlers.h"
#include "recorder/helper/from_process.h"
#include "recorder/helper/standard_error.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {
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
