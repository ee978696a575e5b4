#include "recorder/telling.h"

#include <time.h>

#include "common/system/files.h"
#include "recorder/device/fragmentation.h"
#include "recorder/dumps.h"
#include "recorder/known_refusals.h"
#include "recorder/labels.h"
#include "recorder/news.h"
#include "recorder/threads.h"

namespace oomrec::recorder {

using session::Failure;
using session::g_session;

namespace {

struct Bundles {
  std::atomic<bool> writing{false};
  BundleRate rate;
  std::atomic<bool> open_outcome{false};   // the last bundle's: what becomes of the process
  std::atomic<bool> recovered{false};      // from what that bundle tells: it only has to be written
  std::atomic<std::uint32_t> reported{0};  // the entry that was reported, but is in no bundle
};
constinit Bundles g_bundles;

unsigned bound_seconds() noexcept { return static_cast<unsigned>(g_state.options.bundle_seconds); }

// Until end_writing() no other thread writes a bundle. False: one still does at the deadline.
bool begin_writing(std::uint64_t deadline_ns) noexcept {
  while (g_bundles.writing.exchange(true, std::memory_order_acquire)) {
    if (system::is_sandboxed() || system::monotonic_ns() >= deadline_ns) return false;
    const timespec pause{0, 1'000'000};
    system::call(SYS_nanosleep, &pause, nullptr);
  }
  return true;
}
void end_writing() noexcept { g_bundles.writing.store(false, std::memory_order_release); }

// What takes too long for a refusal that only counts.
void complete_evidence(Failure& failure) noexcept {
  if (failure.device.device == 0 || failure.device.torch_reserved_bytes == 0) return;
  failure.device.torch_largest_free_bytes =
      largest_torch_piece(g_session.view(), failure.device.device);
}

// By whoever has begun. The number is taken back where nothing comes of it.
Told write(InHook hook, bundle::Cause& cause, bool reported) noexcept {
  auto& header = g_session.header();
  Told told;
  told.bundle = header.bundles_written.fetch_add(1, std::memory_order_relaxed) + 1;
  told.texts = true;
  Failure* const failure = cause.failure != 0 ? &g_session.failures.at(cause.failure) : nullptr;
  if (failure != nullptr) {
    complete_evidence(*failure);
    failure->bundle.store(static_cast<std::uint32_t>(told.bundle), std::memory_order_relaxed);
  }
  const bundle::Result result = helper::write_from_process(
      hook, cause, destination(), {g_state.options.quiet, reported}, bound_seconds(), &told.texts);
  if (result == bundle::Result::written) {
    g_bundles.recovered.store(false, std::memory_order_relaxed);
    g_bundles.open_outcome.store(cause.outcome == OutcomeKind::running, std::memory_order_relaxed);
    return told;
  }
  header.bundles_written.fetch_sub(1, std::memory_order_relaxed);
  if (failure != nullptr) {
    failure->bundle.store(0, std::memory_order_relaxed);
    if (result != bundle::Result::timed_out)
      g_bundles.reported.store(cause.failure, std::memory_order_relaxed);
  }
  return {};
}

OutcomeKind outcome_at_end(int status) noexcept {
  const std::uint64_t last_ns = last_refusal().time_ns;
  const bool lived_on = last_ns + kRecoveredNs < system::monotonic_ns();
  return status == 0 || lived_on ? OutcomeKind::recovered : OutcomeKind::exited;
}

}  // namespace

bool bundle_is_due(std::uint64_t now_ns) noexcept { return g_bundles.rate.due(now_ns); }

std::uint64_t writing_deadline_ns() noexcept {
  return system::monotonic_ns() + bound_seconds() * std::uint64_t{1'000'000'000};
}

bool wait_for_writer(std::uint64_t deadline_ns) noexcept {
  if (!begin_writing(deadline_ns)) return false;
  end_writing();
  return true;
}

Told write_bundle(InHook hook, bundle::Cause cause, const Telling& telling) noexcept {
  if (system::is_sandboxed() || !begin_writing(telling.deadline_ns)) return {};
  const std::uint64_t began = system::monotonic_ns();
  ThreadState* const thread = current_thread(hook);
  if (thread != nullptr)
    thread->sums.settle(hook, g_state.holders);  // so that no holder of this thread is overlooked
  Told told;
  if (telling.at_the_end ? g_bundles.rate.due_at_the_end() : g_bundles.rate.due(began)) {
    if (cause.failure != 0) {
      cause.label = label_of(g_session.failures.at(cause.failure).node);
    } else if (thread != nullptr && cause.trigger != Trigger::request) {
      // There the words, which stand in the same place, are part of the verdict.
      cause.label = label_of(thread->root(hook));
    }
    told = write(hook, cause, telling.told);
    g_bundles.rate.ended(began, system::monotonic_ns());
  }
  end_writing();
  if (told.bundle != 0) raise_news(hook);
  return told;
}

bundle::Cause cause_of(std::uint32_t entry, const Refusal& refusal) noexcept {
  bundle::Cause cause;
  cause.trigger = refused_by_limit(refusal) ? Trigger::soft_limit : Trigger::allocation_failed;
  cause.failure = entry;
  return cause;
}

std::uint32_t bundle_of(const Refusal& refusal) noexcept {
  return refusal.entry == 0
             ? 0
             : g_session.failures.at(refusal.entry).bundle.load(std::memory_order_relaxed);
}

bool is_reported(const Refusal& refusal) noexcept {
  return refusal.entry != 0 && refusal.entry == g_bundles.reported.load(std::memory_order_relaxed);
}

bool is_told_last(const Refusal& refusal) noexcept {
  return refusal.entry != 0 &&
         bundle_of(refusal) == g_session.header().bundles_written.load(std::memory_order_relaxed);
}

bool is_old_news(const Refusal& refusal) noexcept {
  return g_bundles.rate.ended_ns() + kRecoveredNs < refusal.time_ns;
}

void recover(InHook hook) noexcept {
  g_bundles.recovered.store(true, std::memory_order_relaxed);
  note_recovery(hook, system::monotonic_ns());
}

bool complete_by_crash(InHook hook, const Refusal& refusal, const Telling& telling) noexcept {
  if (!begin_writing(telling.deadline_ns)) return false;
  const bool completed =
      is_told_last(refusal) && !is_old_news(refusal) &&
      helper::complete_last_by_crash(hook, g_state.options.quiet, bound_seconds());
  if (completed) g_bundles.open_outcome.store(false, std::memory_order_relaxed);
  end_writing();
  return completed;
}

void note_recovery(InHook hook, std::uint64_t now_ns) noexcept {
  if (!g_bundles.open_outcome.load(std::memory_order_relaxed) || !begin_writing(0)) return;
  const bool recovered = g_bundles.recovered.load(std::memory_order_relaxed) ||
                         now_ns > g_bundles.rate.ended_ns() + kRecoveredNs;
  if (recovered && helper::complete_last(hook, OutcomeKind::recovered, 0, 0))
    g_bundles.open_outcome.store(false, std::memory_order_relaxed);
  end_writing();
}

void complete_outcome_at_end(InHook hook, int status) noexcept {
  complete_outcome(hook, outcome_at_end(status), status);
}

void complete_outcome(InHook hook, OutcomeKind outcome, std::int32_t value) noexcept {
  if (!g_bundles.open_outcome.exchange(false, std::memory_order_relaxed)) return;
  if (g_bundles.recovered.load(std::memory_order_relaxed)) {
    outcome = OutcomeKind::recovered;
    value = 0;
  }
  helper::complete_last(hook, outcome, value, bound_seconds());
}

void forget_told(InHook) noexcept {
  end_writing();
  g_bundles.rate.forget();
  g_bundles.open_outcome.store(false, std::memory_order_relaxed);
  g_bundles.recovered.store(false, std::memory_order_relaxed);
  g_bundles.reported.store(0, std::memory_order_relaxed);
}

}  // namespace oomrec::recorder
