#include "recorder/failures/crash.h"

#include <time.h>

#include <atomic>

#include "common/machine/frames.h"
#include "common/system/files.h"
#include "common/verdict/verdict.h"
#include "recorder/failures/crash_link.h"
#include "recorder/failures/failure_table.h"
#include "recorder/failures/failures.h"
#include "recorder/failures/pending_probe.h"
#include "recorder/runtimes/runtime_limit.h"
#include "recorder/session/writer.h"
#include "recorder/stack/stack.h"
#include "recorder/state/failed_request.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

using session::Crash;
using session::g_session;

namespace {

enum class Stage : std::uint8_t { none, under_way, reported };
constinit std::atomic<Stage> g_stage{Stage::none};

void wait_until_reported() noexcept {
  const std::uint64_t seconds = 3 * g_state.options.bundle_seconds;  // as report_crash()
  const std::uint64_t deadline = system::monotonic_ns() + seconds * 1'000'000'000;
  while (g_stage.load(std::memory_order_acquire) != Stage::reported &&
         system::monotonic_ns() < deadline) {
    const timespec pause{0, 1'000'000};
    system::call(SYS_nanosleep, &pause, nullptr);
  }
}

stack::Registers registers_of(const ucontext_t& interrupted) noexcept {
  const auto [pc, sp, bp, link] = machine::interrupted_registers(interrupted);
  return {pc, sp, bp, true, link};
}

void fill_in_signal(Crash& crash, int signal, const siginfo_t& info) noexcept {
  const int code = info.si_code;
  crash.code = code;
  if (code == SI_USER || code == SI_QUEUE || code == SI_TKILL) crash.sender_pid = info.si_pid;
  if (code > 0 && code != SI_KERNEL && (signal == SIGSEGV || signal == SIGBUS))
    crash.address = reinterpret_cast<std::uint64_t>(info.si_addr);
  crash.time_ns = system::monotonic_ns();
}

void fill_in_thread(InHook hook, Crash& crash, ThreadState& thread,
                    const stack::Registers& at) noexcept {
  crash.thread = thread.thread;
  g_session.keep_thread_entry(thread.thread);
  if (crash.address != 0 && stack::is_beyond_stack(hook, at.sp, crash.address))
    crash.flags |= session::kCrashGuardPage;
}

// What links the crash to a failed call: of this thread, else the latest of another one.
void fill_in_failure(InHook hook, int signal, Crash& crash, ThreadState& thread,
                     FailedRequest& failed, FailedCall& call, const stack::Registers& at) noexcept {
  const bool by_this_thread = failed.time_ns != 0;
  stack::Progress progress;
  crash.frame_count =
      stack::capture_interrupted(hook, thread.stacks, at, crash.frames,
                                 {call.frames, by_this_thread ? call.count : 0}, progress);
  // The thread is at its end: its own state serves for the other thread's failure.
  if (!by_this_thread && !last_call(failed, call)) return;
  if (!by_this_thread) progress.ended = call.count;
  ensure_entry(hook, failed);
  crash.failure = failed.entry;
  crash.failure_bytes = failed.request.bytes;
  crash.failure_time_ns = failed.time_ns;
  if (failed.served) crash.flags |= session::kCrashSucceededSince;
  const std::uint64_t served = by_this_thread ? thread.served() : served_to_all();
  const std::uint64_t before = by_this_thread ? call.served : call.served_to_all;
  if (served < before) return;  // a fork's child
  fill_in_link(hook, g_session.header().crash_link, crash,
               {.failed = failed,
                .call = call,
                .signal = signal,
                .served_since = served - before,
                .by_other_thread = !by_this_thread,
                .progress = progress});
}

// The failure that the crash follows from; null: none. Of an episode's failures that is the root,
// unless the program has dealt with that one and certainly not with its after-shock.
FailedRequest* find_failure(InHook hook, int signal, Crash& crash, ThreadState& thread,
                            const stack::Registers& at) noexcept {
  const auto link_to = [&](FailedRequest& failed, FailedCall& call) {
    crash.signal.store(0, std::memory_order_relaxed);
    crash.flags &= session::kCrashGuardPage;
    g_session.header().crash_link = {};
    fill_in_failure(hook, signal, crash, thread, failed, call, at);
    crash.signal.store(static_cast<std::uint32_t>(signal), std::memory_order_release);
  };
  const auto follows = [](Certainty at_least) {
    return verdict::follows_failure(g_session.view(), at_least);
  };
  link_to(thread.failed, thread.failed_call);
  if (thread.aftershock.time_ns != 0 && !follows(Certainty::likely)) {
    link_to(thread.aftershock, thread.aftershock_call);
    if (follows(Certainty::likely)) return &thread.aftershock;
    link_to(thread.failed, thread.failed_call);
  }
  return follows(Certainty::possible) ? &thread.failed : nullptr;
}

void record(InHook hook, int signal, const siginfo_t& info,
            const ucontext_t& interrupted) noexcept {
  Crash& crash = g_session.header().crash;
  fill_in_signal(crash, signal, info);
  ThreadState* const thread = current_thread(hook);
  FailedRequest* failed = nullptr;
  if (thread != nullptr) {
    promote_pending_probe(hook, *thread);
    const stack::Registers at = registers_of(interrupted);
    fill_in_thread(hook, crash, *thread, at);
    failed = find_failure(hook, signal, crash, *thread, at);
  }
  crash.signal.store(static_cast<std::uint32_t>(signal), std::memory_order_release);
  if (failed != nullptr)
    report_crash(hook, *failed);
  else if (at_runtime_limit(hook))
    report_crash_alone(hook);
}

}  // namespace

void on_crash(InHook hook, int signal, const siginfo_t& info,
              const ucontext_t& interrupted) noexcept {
  if (phase() != Phase::active || system::is_sandboxed() || system::process_id() != g_state.pid)
    return;
  Stage none = Stage::none;
  if (!g_stage.compare_exchange_strong(none, Stage::under_way, std::memory_order_acq_rel))
    return wait_until_reported();
  record(hook, signal, info, interrupted);
  g_stage.store(Stage::reported, std::memory_order_release);
}

void reset_crash_after_fork(InHook) noexcept {
  g_stage.store(Stage::none, std::memory_order_relaxed);
}

}  // namespace oomrec::recorder
