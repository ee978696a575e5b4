#include "recorder/failures.h"

#include "common/system/files.h"
#include "recorder/action.h"
#include "recorder/counters.h"
#include "recorder/device/devices.h"
#include "recorder/exceptions.h"
#include "recorder/handlers.h"
#include "recorder/known_refusals.h"
#include "recorder/news.h"
#include "recorder/telling.h"
#include "recorder/threads.h"
#include "recorder/tick.h"

namespace oomrec::recorder {

using session::Failure;
using session::g_session;

namespace {

bool is_provisional(const Refusal& refusal) noexcept {
  const Space space = refusal.request.space;
  return is_device_space(space) && space != Space::torch && is_of_torch(refusal.node);
}

// PyTorch will say, or has not said yet, what became of it. `device` 0: not known which.
bool is_pending(const Refusal& refusal, std::uint32_t device) noexcept {
  const std::uint32_t refused_on = refusal.request.device;
  return refusal.time_ns != 0 && refusal.provisional && !refusal.settled &&
         (device == 0 || refused_on == 0 || refused_on == device);
}

// A bundle of its own.
bool write_crash(InHook hook, Refusal refusal, const Telling& telling) noexcept {
  refusal.entry = enter_last(hook, refusal, bundle_of(refusal) != 0);
  session::Crash& crash = g_session.header().crash;
  crash.failure = refusal.entry;
  bundle::Cause cause;
  cause.trigger = Trigger::crash;
  cause.failure = refusal.entry;
  cause.outcome = OutcomeKind::signal;
  cause.outcome_value = static_cast<std::int32_t>(crash.signal.load(std::memory_order_relaxed));
  return write_bundle(hook, cause, telling).bundle != 0;
}

}  // namespace

void on_failure(InHook hook, const Request& request, int error, bool by_us) noexcept {
  if (phase() == Phase::off) return;
  ThreadState* thread = current_thread(hook);
  if (phase() == Phase::waiting && begin_waiting_session(hook)) thread = current_thread(hook);
  if (phase() != Phase::active) return;

  // What was live is asked at once: others may free it all while this thread waits for its turn.
  Refusal refusal{.request = request,
                  .error = error,
                  .by_us = by_us,
                  .time_ns = system::monotonic_ns(),
                  .live_bytes = live_bytes(thread)};
  if (thread != nullptr) {
    refusal.node = stack::capture(hook, thread->stacks, thread->root(hook));
    refusal.thread = thread->thread;
    refusal.provisional = is_provisional(refusal);
    add_own(thread->lane->spaces[static_cast<std::size_t>(request.space)].failed_count,
            std::uint64_t{1});
  }
  auto& header = g_session.header();
  refusal.number =
      static_cast<std::uint32_t>(1 + (request.probe ? header.probes_total : header.failures_total)
                                         .fetch_add(1, std::memory_order_relaxed));

  // Evidence as fresh as its bundle will be.
  const bool fresh = !request.probe && bundle_is_due(refusal.time_ns);
  bool first = false;
  const std::uint32_t entry = remember(hook, refusal, fresh, first);
  if (thread != nullptr) {
    maybe_read_clock(hook, *thread);
    if (is_device_space(request.space)) {
      append_device_event(*thread, EventKind::fail, request.api, request.space, request.device,
                          entry, request.bytes, refusal.node);
    } else {
      append_event(*thread, EventKind::fail, request.api, entry, request.bytes, refusal.node);
    }
  }
  if (thread != nullptr && !request.probe) {
    const bool handlers = first || thread->refusal.time_ns == 0;
    thread->refusal = refusal;
    if (handlers) put_handlers(hook);
  }
  if (!request.probe && !refusal.provisional) {
    if (first && entry != 0) write_bundle(hook, cause_of(entry, refusal), kWhenDue);
    act_on_refusal(hook);
  }
  if (!request.probe) raise_news(hook);
  if (thread != nullptr) leave(thread);
}

bool warn(InHook hook, Trigger trigger) noexcept {
  bundle::Cause cause;
  cause.trigger = trigger;
  const bool written = write_bundle(hook, cause, kWhenDue).bundle != 0;
  // The next allocation may be the last: a helper that is still at work would be killed with us.
  helper::finish(hook, static_cast<unsigned>(g_state.options.bundle_seconds));
  return written;
}

void tell_last_failure(InHook hook, int status) noexcept {
  Refusal last = last_refusal();
  if (last.time_ns == 0) return;
  const bool told = bundle_of(last) != 0;
  // A repeat of what a bundle tells is told there, unless the program now dies of it.
  const bool harmless = status == 0 || last.settled;
  if (told && (harmless || !(last.had_before || is_old_news(last)))) return;
  const Telling telling{.at_the_end = true, .told = is_reported(last)};
  last.entry = enter_last(hook, last, told);
  bundle::Cause cause = cause_of(last.entry, last);
  cause.outcome = status == 0 ? OutcomeKind::recovered : OutcomeKind::exited;
  cause.outcome_value = status;
  write_bundle(hook, cause, telling);
}

void note_device_served(InHook hook, Api api, std::uint64_t bytes) noexcept {
  ThreadState* const thread = current_thread(hook);
  if (thread == nullptr) return;
  Refusal& refusal = thread->refusal;
  if (refusal.time_ns == 0 || refusal.settled || refusal.provisional ||
      refusal.request.api != api || bytes < refusal.request.bytes)
    return;
  if (is_told_last(refusal)) recover(hook);
  settle(refusal);
}

void note_torch_served(InHook hook, std::uint32_t device) noexcept {
  ThreadState* const thread = current_thread(hook);
  if (thread == nullptr || !is_pending(thread->refusal, device)) return;
  Refusal& refusal = thread->refusal;
  if (refusal.entry != 0 && bundle_of(refusal) == 0) {
    bundle::Cause cause = cause_of(refusal.entry, refusal);
    cause.outcome = OutcomeKind::recovered;
    write_bundle(hook, cause, kWhenDue);
  }
  settle(refusal);
}

bool confirm_refusal(InHook hook, std::uint32_t device) noexcept {
  ThreadState* const thread = current_thread(hook);
  if (thread == nullptr || !is_pending(thread->refusal, device)) return false;
  Refusal& refusal = thread->refusal;
  refusal.settled = true;
  const std::uint64_t now = system::monotonic_ns();
  if (bundle_of(refusal) != 0 && refusal.had_before && bundle_is_due(now))
    enter_anew(hook, refusal);
  if (refusal.entry != 0 && bundle_of(refusal) == 0) {
    g_session.failures.at(refusal.entry).device = device_evidence(refusal.request.device, now);
    write_bundle(hook, cause_of(refusal.entry, refusal), kWhenDue);
  }
  act_on_refusal(hook);
  return true;
}

void tell_crash(InHook hook, const Refusal& refusal) noexcept {
  const Telling telling{.at_the_end = true, .deadline_ns = writing_deadline_ns()};
  if (!complete_by_crash(hook, refusal, telling) &&
      (system::monotonic_ns() > telling.deadline_ns || !write_crash(hook, refusal, telling)))
    return;
  if (!helper::finish(hook, static_cast<unsigned>(g_state.options.bundle_seconds))) return;
  g_session.header().crash.flags |= session::kCrashTold;
  if (last_failure_told()) g_session.remove_file(hook);
}

bool last_failure_told() noexcept {
  for (std::uint32_t entry = g_session.failures.size(); entry-- > 1;) {
    const Failure& failure = g_session.failures.at(entry);
    if ((failure.flags & session::kFailureProbe) == 0)
      return failure.bundle.load(std::memory_order_relaxed) != 0;
  }
  return true;
}

void forget_failures(InHook hook) noexcept {
  forget_known_refusals(hook);
  forget_told(hook);
  forget_exceptions(hook);
}

}  // namespace oomrec::recorder
