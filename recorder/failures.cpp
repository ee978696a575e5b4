#include "recorder/failures.h"

#include <time.h>

#include "recorder/action.h"
#include "recorder/bundle/bundle.h"
#include "recorder/counters.h"
#include "recorder/device/devices.h"
#include "recorder/device/fragmentation.h"
#include "recorder/dumps.h"
#include "recorder/evidence.h"
#include "recorder/hand_over.h"
#include "recorder/handlers.h"
#include "recorder/injection.h"
#include "recorder/labels.h"
#include "recorder/news.h"
#include "recorder/system/files.h"
#include "recorder/threads.h"
#include "recorder/tick.h"

namespace oomrec::recorder {

using session::Failure;
using session::g_session;

namespace {

constexpr std::uint32_t kKnown = 1024;  // places for known refusals: a power of two
constexpr std::uint32_t kMostEntries = kKnown / 2;

struct Known {
  std::uint32_t node;
  std::uint32_t entry;  // in `failures`; 0: free
  bool had;             // the program had what it wanted, later
};

struct Failures {
  system::SpinLock lock;  // known, last
  Known known[kKnown] = {};
  std::uint32_t entries = 0;
  Refusal last;  // should the process end with it

  std::atomic<bool> writing{false};  // a bundle
  BundleRate rate;
  std::atomic<bool> open_outcome{false};  // the last bundle's: what becomes of the process
  std::atomic<bool> recovered{false};     // from what that bundle tells: it only has to be written
  std::atomic<std::uint32_t> with_texts{0};  // a bit for each bundle that tells an exception
  std::atomic<std::uint32_t> reported{0};    // the entry that was reported, but is in no bundle
};
constinit Failures g_failures;

std::uint8_t flags_of(const Refusal& refusal) noexcept {
  const unsigned probe = refusal.request.probe ? session::kFailureProbe : 0;
  const unsigned injected = refusal.request.rule != 0 ? session::kFailureInjected : 0;
  const unsigned refused = refusal.by_us && injected == 0 ? session::kFailureRefused : 0;
  return static_cast<std::uint8_t>(probe | injected | refused);
}

bool same_kind(const Failure& failure, const Refusal& refusal) noexcept {
  constexpr std::uint8_t kKinds = session::kFailureProbe | session::kFailureInjected;
  return failure.node == refusal.node &&
         failure.api == static_cast<std::uint16_t>(refusal.request.api) &&
         failure.space == static_cast<std::uint8_t>(refusal.request.space) &&
         failure.device.device == refusal.request.device &&
         (failure.flags & kKinds) == (flags_of(refusal) & kKinds);
}

// The place of this refusal among the known ones: taken, or free for it.
Known& place_of(const Refusal& refusal) noexcept {
  for (auto at = static_cast<std::uint32_t>(live::mix(refusal.node));; ++at) {
    Known& place = g_failures.known[at % kKnown];
    if (place.entry == 0) return place;
    if (place.node == refusal.node && same_kind(g_session.failures.at(place.entry), refusal))
      return place;
  }
}

std::uint32_t enter(InHook hook, const Refusal& refusal, bool fresh) noexcept {
  const bool on_host = !is_device_space(refusal.request.space);
  const int error = refusal.by_us || !on_host ? 0 : refusal.error;
  const Evidence evidence = read_evidence(hook, refusal.request, error, refusal.time_ns, fresh);
  const limit::Ceilings& seen = evidence.ceilings;
  const session::StringId rule = rule_text(hook, refusal.request.rule);
  std::uint32_t entry = 0;
  const bool entered = g_session.failures.append(hook, entry, [&](Failure& failure) noexcept {
    failure.time_ns = refusal.time_ns;
    failure.realtime_ns = system::realtime_ns();
    failure.bytes = refusal.request.bytes;
    failure.node = refusal.node;
    failure.thread = refusal.thread;
    failure.api = static_cast<std::uint16_t>(refusal.request.api);
    failure.space = static_cast<std::uint8_t>(refusal.request.space);
    failure.flags = flags_of(refusal);
    failure.error = refusal.error;
    failure.live_bytes =
        refusal.live_bytes < 0 ? 0 : static_cast<std::uint64_t>(refusal.live_bytes);
    failure.soft_limit_bytes =
        g_state.limit.bytes() == 0 ? session::kUnlimited : g_state.limit.bytes();
    failure.vm_bytes = seen.vm_bytes;
    failure.rlimit_as_bytes = seen.rlimit_as_bytes;
    failure.data_bytes = seen.data_bytes;
    failure.rlimit_data_bytes = seen.rlimit_data_bytes;
    failure.rss_bytes = seen.rss_bytes;
    failure.ram_bytes = seen.ram_bytes;
    failure.swap_bytes = seen.swap_bytes;
    failure.cgroup_used_bytes = seen.cgroup_used_bytes;
    failure.cgroup_limit_bytes = seen.cgroup_limit_bytes;
    failure.last_ns.store(refusal.time_ns, std::memory_order_relaxed);
    failure.counted = evidence.counted;
    failure.rule = rule;
    failure.device = device_evidence(refusal.request.device, refusal.time_ns);
  });
  if (!entered) drop();
  return entered ? entry : 0;
}

// Counts a repeat, or enters a refusal never seen. `first`: it was never seen.
std::uint32_t remember(InHook hook, Refusal& refusal, bool& first) noexcept {
  const system::SpinGuard guard(g_failures.lock);
  if (!guard) return 0;
  Known& place = place_of(refusal);
  first = place.entry == 0;
  if (!first) {
    Failure& known = g_session.failures.at(place.entry);
    known.repeats.fetch_add(1, std::memory_order_relaxed);
    known.last_ns.store(refusal.time_ns, std::memory_order_relaxed);
    refusal.entry = place.entry;
    refusal.had_before = place.had;
  } else if (g_failures.entries < kMostEntries) {
    // Evidence as fresh as its bundle will be; a flood of new stacks shares what was read.
    const bool fresh = !refusal.request.probe && g_failures.rate.due(refusal.time_ns);
    refusal.entry = enter(hook, refusal, fresh);
    if (refusal.entry != 0) {
      place = {refusal.node, refusal.entry, false};
      ++g_failures.entries;
    }
  }
  if (!refusal.request.probe) g_failures.last = refusal;
  return refusal.entry;
}

// What takes too long for a refusal that only counts.
void complete_evidence(Failure& failure) noexcept {
  if (failure.device.device == 0 || failure.device.torch_reserved_bytes == 0) return;
  failure.device.torch_largest_free_bytes =
      largest_torch_piece(g_session.view(), failure.device.device);
}

// Writes the bundle of cause.failure (0: of none), unless one is being written. True: written.
// `told`: an earlier try has reported it.
bool write_bundle(InHook hook, bundle::Cause cause, bool at_the_end, bool told = false,
                  bool* texts_written = nullptr) noexcept {
  if (system::is_sandboxed() || g_failures.writing.exchange(true, std::memory_order_acquire))
    return false;
  const std::uint64_t began = system::monotonic_ns();
  if (ThreadState* const thread = current_thread(hook); thread != nullptr)
    thread->sums.settle(hook, g_state.holders);  // so that no holder of this thread is overlooked
  bool written = false;
  if (at_the_end ? g_failures.rate.due_at_the_end() : g_failures.rate.due(began)) {
    auto& header = g_session.header();
    const std::uint64_t number = header.bundles_written.fetch_add(1, std::memory_order_relaxed) + 1;
    if (cause.failure != 0) {
      Failure& failure = g_session.failures.at(cause.failure);
      complete_evidence(failure);
      cause.label = label_of(failure.node);
      failure.bundle.store(static_cast<std::uint32_t>(number), std::memory_order_relaxed);
    }
    const Options& options = g_state.options;
    const auto seconds = static_cast<unsigned>(options.bundle_seconds);
    const bundle::Result result = bundle::write_from_process(
        hook, cause, destination(), {options.quiet, told}, seconds, texts_written);
    written = result == bundle::Result::written;
    if (!written) {
      header.bundles_written.fetch_sub(1, std::memory_order_relaxed);
      if (cause.failure != 0) {
        g_session.failures.at(cause.failure).bundle.store(0, std::memory_order_relaxed);
        if (result != bundle::Result::timed_out)
          g_failures.reported.store(cause.failure, std::memory_order_relaxed);
      }
    }
    if (written) {
      g_failures.recovered.store(false, std::memory_order_relaxed);
      g_failures.open_outcome.store(cause.outcome == OutcomeKind::running,
                                    std::memory_order_relaxed);
    }
    g_failures.rate.ended(began, system::monotonic_ns());
  }
  g_failures.writing.store(false, std::memory_order_release);
  if (written) raise_news(hook);
  return written;
}

// The entry that tells the last refusal: its own, unless that tells an earlier one of the same
// kind.
std::uint32_t enter_last(InHook hook, const Refusal& last, bool told) noexcept {
  if (last.entry == 0) return enter(hook, last, true);
  const std::uint32_t repeats =
      g_session.failures.at(last.entry).repeats.load(std::memory_order_relaxed);
  if (!told && repeats == 0) return last.entry;
  const std::uint32_t entry = enter(hook, last, true);
  if (entry == 0) return last.entry;
  g_session.failures.at(entry).repeats.store(repeats, std::memory_order_relaxed);
  return entry;
}

bool is_told(std::uint32_t entry) noexcept {
  return g_session.failures.at(entry).bundle.load(std::memory_order_relaxed) != 0;
}
bool is_told_last(const Refusal& refusal) noexcept {
  return refusal.entry != 0 &&
         g_session.failures.at(refusal.entry).bundle.load(std::memory_order_relaxed) ==
             g_session.header().bundles_written.load(std::memory_order_relaxed);
}

bool refused_by_limit(const Refusal& refusal) noexcept {
  return (flags_of(refusal) & session::kFailureRefused) != 0;
}

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

// What was refused did no harm: the next refusal of its kind may be another story.
void settle(Refusal& refusal) noexcept {
  refusal.settled = true;
  const system::SpinGuard guard(g_failures.lock);
  if (!guard) return;
  if (g_failures.last.time_ns == refusal.time_ns) g_failures.last.settled = true;
  Known& place = place_of(refusal);
  if (place.entry != 0) place.had = true;
}

// An earlier one of its kind is told as one that did no harm, and this one is another: it gets an
// entry of its own, in which its repeats are counted.
void enter_anew(InHook hook, Refusal& refusal) noexcept {
  const std::uint32_t entry = enter(hook, refusal, true);
  const system::SpinGuard guard(g_failures.lock);
  if (entry == 0 || !guard) return;
  place_of(refusal) = {refusal.node, entry, false};
  refusal.entry = entry;
  refusal.had_before = false;
  if (g_failures.last.time_ns == refusal.time_ns) g_failures.last = refusal;
}

// A repeat of what the last bundle tells, but the program had lived on in between.
bool is_old_news(const Refusal& refusal) noexcept {
  return g_failures.rate.ended_ns() + kRecoveredNs < refusal.time_ns;
}

// For whoever has no later chance: another thread's bundle may be under way. False: it still is.
bool wait_for_writer(std::uint64_t deadline_ns) noexcept {
  while (g_failures.writing.load(std::memory_order_acquire)) {
    if (system::monotonic_ns() >= deadline_ns) return false;
    const timespec pause{0, 1'000'000};
    system::call(SYS_nanosleep, &pause, nullptr);
  }
  return true;
}

// The last bundle tells of this refusal, and of the crash that followed when this returns true.
bool complete_by_crash(InHook hook, const Refusal& refusal, unsigned seconds) noexcept {
  const std::uint64_t last = g_session.header().bundles_written.load(std::memory_order_relaxed);
  if (refusal.entry == 0 || is_old_news(refusal) ||
      g_session.failures.at(refusal.entry).bundle.load(std::memory_order_relaxed) != last ||
      g_failures.writing.exchange(true, std::memory_order_acquire))
    return false;
  const bool completed = bundle::complete_last_by_crash(hook, g_state.options.quiet, seconds);
  if (completed) g_failures.open_outcome.store(false, std::memory_order_relaxed);
  g_failures.writing.store(false, std::memory_order_release);
  return completed;
}

// A bundle of its own.
bool write_crash(InHook hook, Refusal refusal) noexcept {
  const bool told =
      refusal.entry != 0 &&
      g_session.failures.at(refusal.entry).bundle.load(std::memory_order_relaxed) != 0;
  refusal.entry = enter_last(hook, refusal, told);
  session::Crash& crash = g_session.header().crash;
  crash.failure = refusal.entry;
  bundle::Cause cause;
  cause.trigger = Trigger::crash;
  cause.failure = refusal.entry;
  cause.outcome = OutcomeKind::signal;
  cause.outcome_value = static_cast<std::int32_t>(crash.signal.load(std::memory_order_relaxed));
  return write_bundle(hook, cause, true);
}

bundle::Cause cause_of(std::uint32_t entry, bool by_limit) noexcept {
  bundle::Cause cause;
  cause.trigger = by_limit ? Trigger::soft_limit : Trigger::allocation_failed;
  cause.failure = entry;
  return cause;
}

OutcomeKind outcome_at_end(int status) noexcept {
  const system::SpinGuard guard(g_failures.lock);
  const bool lived_on = guard && g_failures.last.time_ns + kRecoveredNs < system::monotonic_ns();
  return status == 0 || lived_on ? OutcomeKind::recovered : OutcomeKind::exited;
}

// --- Exceptions ---------------------------------------------------------------------------------

// A bundle that somebody waits for: another thread's, under way, is waited for.
Told write_told(InHook hook, const bundle::Cause& cause) noexcept {
  const auto seconds = static_cast<unsigned>(g_state.options.bundle_seconds);
  if (!wait_for_writer(system::monotonic_ns() + seconds * 1'000'000'000ULL)) return {};
  Told told;
  bool texts = true;
  if (!write_bundle(hook, cause, true, false, &texts)) return {};
  told.bundle = g_session.header().bundles_written.load(std::memory_order_relaxed);
  told.texts = texts;
  return told;
}

void remember_texts(std::uint64_t bundle) noexcept {
  g_failures.with_texts.fetch_or(std::uint32_t{1} << (bundle % 32), std::memory_order_relaxed);
}
bool has_texts(std::uint64_t bundle) noexcept {
  return (g_failures.with_texts.load(std::memory_order_relaxed) >> (bundle % 32) & 1) != 0;
}

bool is_since(const Refusal& refusal, std::uint32_t since) noexcept {
  return refusal.time_ns != 0 && refusal.number > since;
}

// The newest refusal of all, for an exception that is raised on another thread than the one that
// was refused. Each is taken once, and only while it can be what ends the program.
bool take_newest(std::uint32_t since, Refusal& newest) noexcept {
  const system::SpinGuard guard(g_failures.lock);
  if (!guard) return false;
  Refusal& last = g_failures.last;
  if (!is_since(last, since) || last.raised || last.settled ||
      last.time_ns + kRecoveredNs < system::monotonic_ns())
    return false;
  newest = last;
  last.raised = true;
  return true;
}

void note_raised(const Refusal& refusal) noexcept {
  const system::SpinGuard guard(g_failures.lock);
  if (guard && g_failures.last.number == refusal.number) g_failures.last.raised = true;
}

// Completes the bundle that tells the refusal. Where that tells an earlier one of its kind, of
// which an exception came, too, this one gets a bundle of its own if it is time for one. Nothing is
// told: there is no such bundle.
Told tell_exception_of(InHook hook, Refusal& refusal,
                       const bundle::ExceptionTexts& texts) noexcept {
  refusal.settled = true;
  if (refusal.entry == 0) refusal.entry = enter(hook, refusal, true);
  if (refusal.entry == 0) return {};
  Told told;
  told.bundle = g_session.failures.at(refusal.entry).bundle.load(std::memory_order_relaxed);
  if (told.bundle == 0) return {};
  if (!refusal.raised && has_texts(told.bundle)) {
    if (!g_failures.rate.due(system::monotonic_ns())) return told;
    enter_anew(hook, refusal);
    if (g_session.failures.at(refusal.entry).bundle.load(std::memory_order_relaxed) == 0) return {};
    return told;
  }
  refusal.raised = true;
  remember_texts(told.bundle);
  const auto seconds = static_cast<unsigned>(g_state.options.bundle_seconds);
  if (wait_for_writer(system::monotonic_ns() + seconds * 1'000'000'000ULL))
    told.texts = bundle::complete_texts_of(hook, told.bundle, texts, seconds);
  return told;
}

// The same; where there is no such bundle it is written.
Told complete_or_write(InHook hook, Refusal& refusal,
                       const bundle::ExceptionTexts& texts) noexcept {
  const Told told = tell_exception_of(hook, refusal, texts);
  if (told.bundle != 0) return told;
  bundle::Cause cause = cause_of(refusal.entry, refused_by_limit(refusal));
  cause.texts = &texts;
  const Told fresh = write_told(hook, cause);
  if (fresh.bundle != 0) {
    refusal.raised = true;
    remember_texts(fresh.bundle);
  }
  return fresh;
}

// The last bundle's refusal did no harm. Where that cannot be written at once, because the bundle
// itself is still on its way, it is on the tick or at the end.
void recover(InHook hook) noexcept {
  g_failures.recovered.store(true, std::memory_order_relaxed);
  note_recovery(hook, system::monotonic_ns());
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

  bool first = false;
  const std::uint32_t entry = remember(hook, refusal, first);
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
    if (first && entry != 0) write_bundle(hook, cause_of(entry, refused_by_limit(refusal)), false);
    act_on_refusal(hook);
  }
  if (!request.probe) raise_news(hook);
  if (thread != nullptr) leave(thread);
}

Told dump(InHook hook, std::string_view reason, const bundle::ExceptionTexts* texts) noexcept {
  if (phase() == Phase::waiting) begin_waiting_session(hook);
  if (phase() != Phase::active) return {};
  bundle::Cause cause;
  cause.trigger = Trigger::request;
  cause.reason = reason;
  cause.texts = texts;
  return write_told(hook, cause);
}

std::uint32_t last_failure(InHook hook) noexcept {
  const ThreadState* const thread = phase() == Phase::active ? current_thread(hook) : nullptr;
  return thread != nullptr && thread->refusal.time_ns != 0 ? thread->refusal.number : 0;
}

std::uint32_t failures(InHook) noexcept {
  if (phase() != Phase::active) return 0;
  return static_cast<std::uint32_t>(
      g_session.header().failures_total.load(std::memory_order_relaxed));
}

Told tell_exception(InHook hook, const bundle::ExceptionTexts& texts, std::uint32_t since,
                    bool any_thread) noexcept {
  if (phase() == Phase::waiting) begin_waiting_session(hook);
  if (phase() != Phase::active) return {};
  if (since > failures(hook)) since = 0;  // a number of a parent's session
  ThreadState* const thread = current_thread(hook);
  Refusal other;
  Refusal* refusal = nullptr;
  if (thread != nullptr && is_since(thread->refusal, since))
    refusal = &thread->refusal;
  else if (any_thread && take_newest(since, other))
    refusal = &other;
  if (refusal != nullptr) {
    const Told told = complete_or_write(hook, *refusal, texts);
    note_raised(*refusal);
    return told;
  }
  bundle::Cause cause;
  cause.texts = &texts;
  cause.trigger = Trigger::exception;
  if (thread != nullptr) cause.label = label_of(thread->root(hook));
  return write_told(hook, cause);
}

std::size_t last_bundle(InHook hook, std::span<char> path) noexcept {
  if (phase() != Phase::active) return 0;
  const auto seconds = static_cast<unsigned>(g_state.options.bundle_seconds);
  std::uint64_t number = g_session.header().bundles_written.load(std::memory_order_relaxed);
  std::size_t bytes = 0;  // one that is being written counts already, but has no path yet
  for (; bytes == 0 && number != 0; --number)
    bytes = bundle::path_of(hook, number, path, seconds).size();
  return bytes;
}

std::size_t failure_bundle(InHook hook, std::span<char> path) noexcept {
  const ThreadState* const thread = phase() == Phase::active ? current_thread(hook) : nullptr;
  if (thread == nullptr || thread->refusal.entry == 0) return 0;
  const Failure& failure = g_session.failures.at(thread->refusal.entry);
  return bundle_path(hook, failure.bundle.load(std::memory_order_relaxed), path);
}

std::size_t bundle_path(InHook hook, std::uint64_t number, std::span<char> path) noexcept {
  const auto seconds = static_cast<unsigned>(g_state.options.bundle_seconds);
  return bundle::path_of(hook, number, path, seconds).size();
}

bool warn(InHook hook, Trigger trigger) noexcept {
  bundle::Cause cause;
  cause.trigger = trigger;
  const bool written = write_bundle(hook, cause, false);
  // The next allocation may be the last: a helper that is still at work would be killed with us.
  bundle::finish(hook, static_cast<unsigned>(g_state.options.bundle_seconds));
  return written;
}

void tell_last_failure(InHook hook, int status) noexcept {
  Refusal last;
  {
    const system::SpinGuard guard(g_failures.lock);
    if (!guard || g_failures.last.time_ns == 0) return;
    last = g_failures.last;
  }
  const bool told = last.entry != 0 && is_told(last.entry);
  // A repeat of what a bundle tells is told there, unless the program now dies of it.
  const bool harmless = status == 0 || last.settled;
  if (told && (harmless || !(last.had_before || is_old_news(last)))) return;
  const bool reported =
      last.entry != 0 && last.entry == g_failures.reported.load(std::memory_order_relaxed);
  last.entry = enter_last(hook, last, told);
  bundle::Cause cause = cause_of(last.entry, refused_by_limit(last));
  cause.outcome = status == 0 ? OutcomeKind::recovered : OutcomeKind::exited;
  cause.outcome_value = status;
  write_bundle(hook, cause, true, reported);
}

void note_recovery(InHook hook, std::uint64_t now_ns) noexcept {
  if (!g_failures.open_outcome.load(std::memory_order_relaxed) ||
      g_failures.writing.exchange(true, std::memory_order_acquire))
    return;
  const bool recovered = g_failures.recovered.load(std::memory_order_relaxed) ||
                         now_ns > g_failures.rate.ended_ns() + kRecoveredNs;
  if (recovered && bundle::complete_last(hook, OutcomeKind::recovered, 0, 0)) {
    g_failures.open_outcome.store(false, std::memory_order_relaxed);
  }
  g_failures.writing.store(false, std::memory_order_release);
}

void complete_outcome_at_end(InHook hook, int status) noexcept {
  complete_outcome(hook, outcome_at_end(status), status);
}

void complete_outcome(InHook hook, OutcomeKind outcome, std::int32_t value) noexcept {
  if (!g_failures.open_outcome.exchange(false, std::memory_order_relaxed)) return;
  if (g_failures.recovered.load(std::memory_order_relaxed)) {
    outcome = OutcomeKind::recovered;
    value = 0;
  }
  const auto seconds = static_cast<unsigned>(g_state.options.bundle_seconds);
  bundle::complete_last(hook, outcome, value, seconds);
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
  if (refusal.entry != 0 && !is_told(refusal.entry)) {
    bundle::Cause cause = cause_of(refusal.entry, refused_by_limit(refusal));
    cause.outcome = OutcomeKind::recovered;
    write_bundle(hook, cause, false);
  }
  settle(refusal);
}

bool confirm_refusal(InHook hook, std::uint32_t device) noexcept {
  ThreadState* const thread = current_thread(hook);
  if (thread == nullptr || !is_pending(thread->refusal, device)) return false;
  Refusal& refusal = thread->refusal;
  refusal.settled = true;
  const std::uint64_t now = system::monotonic_ns();
  const bool told = refusal.entry != 0 && is_told(refusal.entry);
  if (told && refusal.had_before && g_failures.rate.due(now)) enter_anew(hook, refusal);
  if (refusal.entry != 0 && !is_told(refusal.entry)) {
    g_session.failures.at(refusal.entry).device = device_evidence(refusal.request.device, now);
    write_bundle(hook, cause_of(refusal.entry, refused_by_limit(refusal)), false);
  }
  act_on_refusal(hook);
  return true;
}

void tell_crash(InHook hook, const Refusal& refusal) noexcept {
  const auto seconds = static_cast<unsigned>(g_state.options.bundle_seconds);
  const std::uint64_t deadline = system::monotonic_ns() + seconds * 1'000'000'000ULL;
  if (!wait_for_writer(deadline)) return;
  if (!complete_by_crash(hook, refusal, seconds) &&
      (system::monotonic_ns() > deadline || !write_crash(hook, refusal)))
    return;
  if (!bundle::finish(hook, seconds)) return;
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

void forget_failures(InHook) noexcept {
  g_failures.lock.unlock();
  forget_evidence();
  g_failures.writing.store(false, std::memory_order_relaxed);
  for (Known& place : g_failures.known) place = {};
  g_failures.entries = 0;
  g_failures.last = {};
  g_failures.rate.forget();
  g_failures.open_outcome.store(false, std::memory_order_relaxed);
  g_failures.recovered.store(false, std::memory_order_relaxed);
  g_failures.reported.store(0, std::memory_order_relaxed);
  g_failures.with_texts.store(0, std::memory_order_relaxed);
}

}  // namespace oomrec::recorder
