#include "recorder/failures/failures.h"

#include "common/system/files.h"
#include "recorder/devices/pytorch.h"
#include "recorder/devices/registry.h"
#include "recorder/failures/bundle_scheduler.h"
#include "recorder/failures/episode.h"
#include "recorder/failures/exceptions.h"
#include "recorder/failures/exit.h"
#include "recorder/failures/failure_table.h"
#include "recorder/failures/pending_probe.h"
#include "recorder/failures/signal_handlers.h"
#include "recorder/state/callbacks.h"
#include "recorder/state/clock.h"
#include "recorder/state/counters.h"
#include "recorder/state/node_scope.h"
#include "recorder/state/notifications.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

using session::Failure;
using session::g_session;

namespace {

constexpr std::uint64_t kManyRequests = 1000;  // Python's traceback of a MemoryError makes some 100

FailureStage first_stage(const FailedRequest& failed) noexcept {
  const Space space = failed.request.space;
  const bool by_torch = is_device_space(space) && space != Space::torch && is_of_torch(failed.node);
  return by_torch ? FailureStage::pending : FailureStage::open;
}

// Whether PyTorch has yet to report the failure's outcome. `device` 0: any.
bool is_pending(const FailedRequest& failed, std::uint32_t device) noexcept {
  const std::uint32_t failed_on = failed.request.device;
  return failed.time_ns != 0 && failed.stage == FailureStage::pending &&
         (device == 0 || failed_on == 0 || failed_on == device);
}

// The program has dealt with the episode's root: the failure that comes now is another matter.
void end_episode_if_gone_on(InHook hook, const FailedRequest& failed) noexcept {
  if (!has_resumed(failed)) return;
  resolve_kind(root_of_episode());
  helper::finish(hook, bound_seconds());  // its bundle, so that it can be completed
  recover(hook);
}

void fill_in_call(InHook hook, ThreadState& thread, FailedCall& call) noexcept {
  call.served = thread.served();
  call.served_to_all = served_to_all();
  call.count = stack::current_activations(hook, thread.stacks, call.frames);
}

// Writes a bundle for the crash alone. `failure`: entry of the failure that it follows from; 0:
// none.
bool write_crash(InHook hook, std::uint32_t failure, const BundleRequest& request) noexcept {
  session::Crash& crash = g_session.header().crash;
  crash.failure = failure;
  bundle::Cause cause;
  cause.trigger = Trigger::crash;
  cause.failure = failure;
  cause.outcome = OutcomeKind::signal;
  cause.outcome_value = static_cast<std::int32_t>(crash.signal.load(std::memory_order_relaxed));
  return write_bundle(hook, cause, request).number != 0;
}

void finish_crash(InHook hook) noexcept {
  if (!helper::finish(hook, static_cast<unsigned>(g_state.options.bundle_seconds))) return;
  g_session.header().crash.flags |= session::kCrashInBundle;
  if (last_failure_reported()) g_session.remove_file(hook);
}

}  // namespace

void on_failure(InHook hook, const Request& request, int error, FailedBy by) noexcept {
  if (phase() == Phase::off) return;
  ThreadState* thread = current_thread(hook);
  if (phase() == Phase::waiting && begin_waiting_session(hook)) thread = current_thread(hook);
  if (phase() != Phase::active) return;

  // Live bytes are read first: other threads may free all of it while this one waits for a lock.
  FailedRequest failed{.request = request,
                       .error = error,
                       .by = by,
                       .time_ns = system::monotonic_ns(),
                       .live_bytes = live_bytes(thread)};
  const NodeScope nodes{hook, thread};
  if (thread != nullptr) {
    failed.node = stack::capture(hook, thread->stacks, thread->root(hook));
    failed.thread = thread->thread;
    failed.stage = first_stage(failed);
    add_own(thread->lane->spaces[static_cast<std::size_t>(request.space)].failed_count,
            std::uint64_t{1});
  }
  const bool may_report = !request.probe && failed.stage == FailureStage::open;
  if (may_report) end_episode_if_gone_on(hook, failed);
  auto& header = g_session.header();
  failed.number =
      static_cast<std::uint32_t>(1 + (request.probe ? header.probes_total : header.failures_total)
                                         .fetch_add(1, std::memory_order_relaxed));

  // A bundle needs evidence of the present moment.
  const bool is_due = !request.probe && bundle_is_due(failed.time_ns);
  const auto [entry, first] =
      record_failure(hook, failed, is_due ? EvidenceFrom::now : EvidenceFrom::cache);
  if (thread != nullptr) {
    maybe_read_clock(hook, *thread);
    if (is_device_space(request.space)) {
      append_device_event(*thread, EventKind::fail, request.api, request.space, request.device,
                          entry, request.bytes, failed.node);
    } else {
      append_event(*thread, EventKind::fail, request.api, entry, request.bytes, failed.node);
    }
  }
  const bool is_aftershock = may_report && join_episode(hook, failed);
  // Its kind is not in the table, which is full.
  if (first && entry == 0 && is_due && may_report && !is_aftershock) add_new_entry(hook, failed);
  if (thread != nullptr && request.probe) {
    store_probe(hook, failed, *thread);
    if (first) install_handlers(hook);
  } else if (thread != nullptr) {
    const bool handlers = first || thread->failed.time_ns == 0;
    // A crash follows from the root, not from what its handling asked for. An exception that was
    // reported ends that: the next one has another failure.
    // And so does having been served many requests: that is no handling.
    const bool went_on = thread->served() - thread->failed_call.served >= kManyRequests;
    const bool keeps_root =
        is_aftershock && is_root(thread->failed) && !thread->failed.raised && !went_on;
    fill_in_call(hook, *thread, keeps_root ? thread->aftershock_call : thread->failed_call);
    if (keeps_root) {
      thread->aftershock = failed;
    } else {
      thread->failed = failed;
      thread->aftershock = {};
      keep_call(failed, thread->failed_call);
    }
    if (handlers) install_handlers(hook);
  }
  if (may_report) {
    if (failed.entry != 0 && !is_aftershock) {
      // An after-shock's kind may come back as a root.
      const bool is_new_root = !first && is_due && was_aftershock(failed);
      if (is_new_root) add_new_entry(hook, failed);
      if (first || is_new_root) write_bundle(hook, cause_of(failed.entry, failed), kWhenDue);
    }
    act_on_failure(hook);
    if (is_root(failed)) repeat_root(system::monotonic_ns(), failed.live_bytes);
  }
  if (!request.probe) notify_waiters(hook);
  if (thread != nullptr) leave(thread);
}

bool warn(InHook hook, Trigger trigger) noexcept {
  bundle::Cause cause;
  cause.trigger = trigger;
  const bool written = write_bundle(hook, cause, kWhenDue).number != 0;
  // Wait for the helper: the next allocation may be the last, and it would be killed with us.
  helper::finish(hook, static_cast<unsigned>(g_state.options.bundle_seconds));
  return written;
}

void report_last_failure(InHook hook, int status) noexcept {
  FailedRequest last = last_failure();
  if (last.time_ns == 0) return;
  const bool reported = bundle_of(last) != 0;
  // A bundle counts the repeats of its failure, unless the program now dies of one.
  const bool harmless = status == 0 || last.stage == FailureStage::resolved;
  if (reported && (harmless || !(last.recovered_before || is_stale(last)))) return;
  const BundleRequest request{.last_chance = true, .reported = is_reported(last)};
  last.entry = entry_of_last(hook, last);
  // The table could not grow. Without its request a bundle says less than the one that there is.
  const bool has_bundle = g_session.header().bundles_written.load(std::memory_order_relaxed) != 0;
  if (last.entry == 0 && has_bundle) return;
  bundle::Cause cause = cause_of(last.entry, last);
  cause.outcome = status == 0 ? OutcomeKind::recovered : OutcomeKind::exited;
  cause.outcome_value = status;
  write_bundle(hook, cause, request);
}

void resolve_served_device(InHook hook, Api api, std::uint64_t bytes) noexcept {
  ThreadState* const thread = current_thread(hook);
  if (thread == nullptr) return;
  FailedRequest& failed = thread->failed;
  if (failed.time_ns == 0 || failed.stage != FailureStage::open || failed.request.api != api ||
      bytes < failed.request.bytes)
    return;
  if (is_in_last_bundle(failed)) recover(hook);
  resolve(failed);
}

void on_torch_served(InHook hook, std::uint32_t device) noexcept {
  ThreadState* const thread = current_thread(hook);
  if (thread == nullptr || !is_pending(thread->failed, device)) return;
  FailedRequest& failed = thread->failed;
  if (failed.entry != 0 && bundle_of(failed) == 0) {
    bundle::Cause cause = cause_of(failed.entry, failed);
    cause.outcome = OutcomeKind::recovered;
    write_bundle(hook, cause, kWhenDue);
  }
  resolve(failed);
}

bool confirm_failure(InHook hook, std::uint32_t device) noexcept {
  ThreadState* const thread = current_thread(hook);
  if (thread == nullptr || !is_pending(thread->failed, device)) return false;
  FailedRequest& failed = thread->failed;
  failed.stage = FailureStage::resolved;
  const std::uint64_t now = system::monotonic_ns();
  if (bundle_of(failed) != 0 && failed.recovered_before && bundle_is_due(now))
    add_new_entry(hook, failed);
  if (failed.entry != 0 && bundle_of(failed) == 0) {
    g_session.failures.at(failed.entry).device = device_evidence(failed.request.device, now);
    write_bundle(hook, cause_of(failed.entry, failed), kWhenDue);
  }
  act_on_failure(hook);
  return true;
}

void report_crash(InHook hook, const FailedRequest& failed) noexcept {
  const BundleRequest request{.last_chance = true, .deadline_ns = writing_deadline_ns()};
  if (was_aftershock(failed)) {  // the program has recovered from the root of its episode
    helper::finish(hook, bound_seconds());
    recover(hook);
  }
  if (complete_by_crash(hook, failed, request) ||
      (system::monotonic_ns() <= request.deadline_ns &&
       write_crash(hook, entry_of_last(hook, failed), request)))
    finish_crash(hook);
}

void report_crash_alone(InHook hook) noexcept {
  if (write_crash(hook, 0, {.last_chance = true, .deadline_ns = writing_deadline_ns()}))
    finish_crash(hook);
}

std::uint32_t last_failure_number(InHook hook) noexcept {
  const ThreadState* const thread = phase() == Phase::active ? current_thread(hook) : nullptr;
  if (thread == nullptr) return 0;
  const FailedRequest& latest =
      thread->aftershock.time_ns != 0 ? thread->aftershock : thread->failed;
  return latest.time_ns != 0 ? latest.number : 0;
}

std::uint32_t failure_count(InHook) noexcept {
  if (phase() != Phase::active) return 0;
  return static_cast<std::uint32_t>(
      g_session.header().failures_total.load(std::memory_order_relaxed));
}

bool last_failure_reported() noexcept {
  for (std::uint32_t entry = g_session.failures.size(); entry-- > 1;) {
    const Failure& failure = g_session.failures.at(entry);
    if ((failure.flags & session::kFailureProbe) == 0)
      return failure.bundle.load(std::memory_order_relaxed) != 0;
  }
  return true;
}

void reset_failures_after_fork(InHook hook) noexcept {
  reset_failure_table_after_fork(hook);
  reset_bundle_scheduler_after_fork(hook);
  reset_exceptions_after_fork(hook);
  reset_pending_probe_after_fork(hook);
}

}  // namespace oomrec::recorder
