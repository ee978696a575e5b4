#include "recorder/failures/bundle_scheduler.h"

#include <time.h>

#include <algorithm>

#include "common/system/files.h"
#include "recorder/devices/pytorch.h"
#include "recorder/failures/dump_directory.h"
#include "recorder/failures/episode.h"
#include "recorder/failures/failure_table.h"
#include "recorder/process/object_heap.h"
#include "recorder/state/callbacks.h"
#include "recorder/state/labels.h"
#include "recorder/state/looks.h"
#include "recorder/state/notifications.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

using session::Failure;
using session::g_session;

namespace {

struct Bundles {
  std::atomic<bool> writing{false};
  BundleRate rate;
  std::atomic<std::uint64_t> failure_written_ns{0};  // the last bundle of a failure
  std::atomic<bool> open_outcome{false};             // the last bundle lacks it
  std::atomic<bool> recovered{false};                // from its failure: only to be written there
  std::atomic<std::uint32_t> reported{0};            // entry on stderr, but in no bundle
};
constinit Bundles g_bundles;

// Keeps other threads from writing until end_writing(). False: one still writes at the deadline.
bool begin_writing(std::uint64_t deadline_ns) noexcept {
  while (g_bundles.writing.exchange(true, std::memory_order_acquire)) {
    if (system::is_sandboxed() || system::monotonic_ns() >= deadline_ns) return false;
    const timespec pause{0, 1'000'000};
    system::call(SYS_nanosleep, &pause, nullptr);
  }
  return true;
}
void end_writing() noexcept { g_bundles.writing.store(false, std::memory_order_release); }

// Evidence that takes too long for a failure without a bundle.
void complete_evidence(Failure& failure) noexcept {
  if (failure.device.device == 0 || failure.device.torch_reserved_bytes == 0) return;
  failure.device.torch_largest_free_bytes =
      largest_torch_piece(g_session.view(), failure.device.device);
}

// Call after begin_writing(). Takes the number back if no bundle is written.
WrittenBundle write(InHook hook, bundle::Cause& cause, bool reported) noexcept {
  auto& header = g_session.header();
  WrittenBundle written;
  written.number = header.bundles_written.fetch_add(1, std::memory_order_relaxed) + 1;
  written.has_texts = true;
  Failure* const failure = cause.failure != 0 ? &g_session.failures.at(cause.failure) : nullptr;
  if (failure != nullptr) {
    complete_evidence(*failure);
    failure->bundle.store(static_cast<std::uint32_t>(written.number), std::memory_order_relaxed);
    cause.outcome == OutcomeKind::running ? begin_episode(cause.failure) : end_episode();
  }
  const bundle::Result result =
      helper::write_from_process(hook, cause, destination(), {g_state.options.quiet, reported},
                                 bound_seconds(), &written.has_texts);
  if (result == bundle::Result::written) {
    g_bundles.recovered.store(false, std::memory_order_relaxed);
    g_bundles.open_outcome.store(cause.outcome == OutcomeKind::running, std::memory_order_relaxed);
    return written;
  }
  header.bundles_written.fetch_sub(1, std::memory_order_relaxed);
  if (failure != nullptr) {
    abandon_episode(hook, written.number);
    if (result != bundle::Result::timed_out)
      g_bundles.reported.store(cause.failure, std::memory_order_relaxed);
  }
  return {};
}

// The program has waited for the bundle of its failure. A bundle without a failure, as of a
// warning, is no reason to end.
OutcomeKind outcome_at_end(int status, std::uint64_t now_ns) noexcept {
  const std::uint64_t last_ns = std::max(
      last_failure().time_ns, g_bundles.failure_written_ns.load(std::memory_order_relaxed));
  const bool lived_on = last_ns + kRecoveredNs < now_ns;
  return status == 0 || lived_on ? OutcomeKind::recovered : OutcomeKind::exited;
}

}  // namespace

unsigned bound_seconds() noexcept { return static_cast<unsigned>(g_state.options.bundle_seconds); }

bool bundle_is_due(std::uint64_t now_ns) noexcept { return g_bundles.rate.due(now_ns); }

std::uint64_t writing_deadline_ns() noexcept {
  return system::monotonic_ns() + bound_seconds() * std::uint64_t{1'000'000'000};
}

WrittenBundle write_requested(InHook hook, const bundle::Cause& cause) noexcept {
  return write_bundle(hook, cause, {.last_chance = true, .deadline_ns = writing_deadline_ns()});
}

bool wait_for_writer(std::uint64_t deadline_ns) noexcept {
  if (!begin_writing(deadline_ns)) return false;
  end_writing();
  return true;
}

WrittenBundle write_bundle(InHook hook, bundle::Cause cause,
                           const BundleRequest& request) noexcept {
  if (system::is_sandboxed()) return {};
  measure_object_heap(hook);  // before begin_writing(): it may itself warn of a limit
  if (!begin_writing(request.deadline_ns)) return {};
  const std::uint64_t began = system::monotonic_ns();
  ThreadState* const thread = current_thread(hook);
  if (thread != nullptr)
    thread->sums.flush(hook, g_state.holders);  // the bundle shows this thread's holders, too
  WrittenBundle written;
  if (request.last_chance ? g_bundles.rate.due_as_last_chance() : g_bundles.rate.due(began)) {
    if (cause.failure != 0) {
      cause.label = label_of(g_session.failures.at(cause.failure).node);
    } else if (thread != nullptr && cause.trigger != Trigger::request) {
      // A requested bundle has the reason there, as part of its verdict.
      cause.label = label_of(thread->root(hook));
    }
    // A crash is handled on a small stack, and is about no limit.
    if (cause.trigger != Trigger::crash) look_at_pages(hook, kLookForBundleNs);
    written = write(hook, cause, request.reported);
    const std::uint64_t ended = system::monotonic_ns();
    g_bundles.rate.ended(began, ended);
    if (cause.failure != 0) g_bundles.failure_written_ns.store(ended, std::memory_order_relaxed);
    continue_episode(ended);
  }
  end_writing();
  if (written.number != 0) notify_waiters(hook);
  return written;
}

bundle::Cause cause_of(std::uint32_t entry, const FailedRequest& failed) noexcept {
  bundle::Cause cause;
  cause.trigger = failed_by_own_limit(failed) ? Trigger::soft_limit : Trigger::allocation_failed;
  cause.failure = entry;
  return cause;
}

std::uint32_t bundle_of(const FailedRequest& failed) noexcept {
  return failed.entry == 0
             ? failed.bundle
             : g_session.failures.at(failed.entry).bundle.load(std::memory_order_relaxed);
}

bool is_reported(const FailedRequest& failed) noexcept {
  return failed.entry != 0 && failed.entry == g_bundles.reported.load(std::memory_order_relaxed);
}

bool is_in_last_bundle(const FailedRequest& failed) noexcept {
  return failed.entry != 0 && !was_aftershock(failed) &&
         bundle_of(failed) == g_session.header().bundles_written.load(std::memory_order_relaxed);
}

bool is_stale(const FailedRequest& failed) noexcept {
  return g_bundles.rate.ended_ns() + kRecoveredNs < failed.time_ns;
}

void recover(InHook hook) noexcept {
  end_episode();
  g_bundles.recovered.store(true, std::memory_order_relaxed);
  resolve_recovered(hook, system::monotonic_ns());
}

bool complete_by_crash(InHook hook, const FailedRequest& failed,
                       const BundleRequest& request) noexcept {
  if (!begin_writing(request.deadline_ns)) return false;
  const bool completed =
      is_in_last_bundle(failed) && !is_stale(failed) &&
      helper::complete_last_by_crash(hook, {.quiet = g_state.options.quiet}, bound_seconds());
  if (completed) g_bundles.open_outcome.store(false, std::memory_order_relaxed);
  end_writing();
  return completed;
}

void resolve_recovered(InHook hook, std::uint64_t now_ns) noexcept {
  if (!g_bundles.open_outcome.load(std::memory_order_relaxed) || !begin_writing(0)) return;
  const bool recovered = g_bundles.recovered.load(std::memory_order_relaxed) ||
                         now_ns > g_bundles.rate.ended_ns() + kRecoveredNs;
  if (recovered && helper::complete_last(hook, OutcomeKind::recovered, 0, 0))
    g_bundles.open_outcome.store(false, std::memory_order_relaxed);
  end_writing();
}

void complete_outcome_at_end(InHook hook, int status, std::uint64_t now_ns) noexcept {
  complete_outcome(hook, outcome_at_end(status, now_ns), status);
}

void complete_outcome(InHook hook, OutcomeKind outcome, std::int32_t value) noexcept {
  if (!g_bundles.open_outcome.exchange(false, std::memory_order_relaxed)) return;
  if (g_bundles.recovered.load(std::memory_order_relaxed)) {
    outcome = OutcomeKind::recovered;
    value = 0;
  }
  helper::complete_last(hook, outcome, value, bound_seconds());
}

void reset_bundle_scheduler_after_fork(InHook) noexcept {
  end_writing();
  end_episode();
  g_bundles.rate.reset();
  g_bundles.failure_written_ns.store(0, std::memory_order_relaxed);
  g_bundles.open_outcome.store(false, std::memory_order_relaxed);
  g_bundles.recovered.store(false, std::memory_order_relaxed);
  g_bundles.reported.store(0, std::memory_order_relaxed);
}

using session::g_session;

WrittenBundle dump(InHook hook, std::string_view reason,
                   const text::ExceptionTexts* texts) noexcept {
  if (phase() == Phase::waiting) begin_waiting_session(hook);
  if (phase() != Phase::active) return {};
  bundle::Cause cause;
  cause.trigger = Trigger::request;
  cause.reason = reason;
  cause.texts = texts;
  return write_requested(hook, cause);
}

std::size_t last_bundle(InHook hook, std::span<char> path) noexcept {
  if (phase() != Phase::active) return 0;
  std::uint64_t number = g_session.header().bundles_written.load(std::memory_order_relaxed);
  std::size_t bytes = 0;  // a bundle being written counts already, but has no path yet
  for (; bytes == 0 && number != 0; --number) bytes = bundle_path(hook, number, path);
  return bytes;
}

std::size_t failure_bundle(InHook hook, std::span<char> path) noexcept {
  const ThreadState* const thread = phase() == Phase::active ? current_thread(hook) : nullptr;
  if (thread == nullptr || thread->failed.entry == 0) return 0;
  const session::Failure& failure = g_session.failures.at(thread->failed.entry);
  return bundle_path(hook, failure.bundle.load(std::memory_order_relaxed), path);
}

std::size_t bundle_path(InHook hook, std::uint64_t number, std::span<char> path) noexcept {
  return helper::path_of(hook, number, path, bound_seconds()).size();
}

}  // namespace oomrec::recorder
