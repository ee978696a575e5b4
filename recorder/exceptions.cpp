// What the program says of its exceptions and asks of its bundles: it waits for them.
#include "common/system/files.h"
#include "recorder/helper/from_process.h"
#include "recorder/known_refusals.h"
#include "recorder/state.h"
#include "recorder/telling.h"
#include "recorder/threads.h"

namespace oomrec::recorder {

using session::g_session;

namespace {

// A bit for each bundle that tells an exception.
constinit std::atomic<std::uint32_t> g_with_texts{0};

void remember_texts(std::uint64_t bundle) noexcept {
  g_with_texts.fetch_or(std::uint32_t{1} << (bundle % 32), std::memory_order_relaxed);
}
bool has_texts(std::uint64_t bundle) noexcept {
  return (g_with_texts.load(std::memory_order_relaxed) >> (bundle % 32) & 1) != 0;
}

unsigned bound_seconds() noexcept { return static_cast<unsigned>(g_state.options.bundle_seconds); }

Told write_awaited(InHook hook, const bundle::Cause& cause) noexcept {
  return write_bundle(hook, cause, {.at_the_end = true, .deadline_ns = writing_deadline_ns()});
}

// The thread's latest refusal, if it is later than number `since`.
Refusal* refusal_since(ThreadState* thread, std::uint32_t since) noexcept {
  if (thread == nullptr || thread->refusal.time_ns == 0) return nullptr;
  return thread->refusal.number > since ? &thread->refusal : nullptr;
}

// Completes the bundle that tells the refusal. Where that tells an earlier one of its kind, of
// which an exception came, too, this one gets a bundle of its own if it is time for one. Nothing is
// told: there is no such bundle.
Told complete_told(InHook hook, Refusal& refusal, const text::ExceptionTexts& texts) noexcept {
  refusal.settled = true;
  enter_unknown(hook, refusal);
  Told told;
  told.bundle = bundle_of(refusal);
  if (told.bundle == 0) return {};
  if (!refusal.raised && has_texts(told.bundle)) {
    if (!bundle_is_due(system::monotonic_ns())) return told;
    enter_anew(hook, refusal);
    if (bundle_of(refusal) == 0) return {};
    return told;
  }
  refusal.raised = true;
  remember_texts(told.bundle);
  if (wait_for_writer(writing_deadline_ns()))  // that bundle may be on its way
    told.texts = helper::complete_texts_of(hook, told.bundle, texts, bound_seconds());
  return told;
}

Told tell_of_refusal(InHook hook, Refusal& refusal, const text::ExceptionTexts& texts) noexcept {
  if (const Told told = complete_told(hook, refusal, texts); told.bundle != 0) return told;
  bundle::Cause cause = cause_of(refusal.entry, refusal);
  cause.texts = &texts;
  const Told told = write_awaited(hook, cause);
  if (told.bundle == 0) return told;
  refusal.raised = true;
  remember_texts(told.bundle);
  return told;
}

}  // namespace

Told tell_exception(InHook hook, const text::ExceptionTexts& texts, std::uint32_t since,
                    bool any_thread) noexcept {
  if (phase() == Phase::waiting) begin_waiting_session(hook);
  if (phase() != Phase::active) return {};
  if (since > failures(hook)) since = 0;  // a number of a parent's session
  Refusal other;
  Refusal* refusal = refusal_since(current_thread(hook), since);
  if (refusal == nullptr && any_thread && take_newest(since, other)) refusal = &other;
  if (refusal != nullptr) {
    const Told told = tell_of_refusal(hook, *refusal, texts);
    note_raised(*refusal);
    return told;
  }
  bundle::Cause cause;
  cause.trigger = Trigger::exception;
  cause.texts = &texts;
  return write_awaited(hook, cause);
}

Told dump(InHook hook, std::string_view reason, const text::ExceptionTexts* texts) noexcept {
  if (phase() == Phase::waiting) begin_waiting_session(hook);
  if (phase() != Phase::active) return {};
  bundle::Cause cause;
  cause.trigger = Trigger::request;
  cause.reason = reason;
  cause.texts = texts;
  return write_awaited(hook, cause);
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

std::size_t last_bundle(InHook hook, std::span<char> path) noexcept {
  if (phase() != Phase::active) return 0;
  std::uint64_t number = g_session.header().bundles_written.load(std::memory_order_relaxed);
  std::size_t bytes = 0;  // one that is being written counts already, but has no path yet
  for (; bytes == 0 && number != 0; --number) bytes = bundle_path(hook, number, path);
  return bytes;
}

std::size_t failure_bundle(InHook hook, std::span<char> path) noexcept {
  const ThreadState* const thread = phase() == Phase::active ? current_thread(hook) : nullptr;
  if (thread == nullptr || thread->refusal.entry == 0) return 0;
  const session::Failure& failure = g_session.failures.at(thread->refusal.entry);
  return bundle_path(hook, failure.bundle.load(std::memory_order_relaxed), path);
}

std::size_t bundle_path(InHook hook, std::uint64_t number, std::span<char> path) noexcept {
  return helper::path_of(hook, number, path, bound_seconds()).size();
}

void forget_exceptions(InHook) noexcept { g_with_texts.store(0, std::memory_order_relaxed); }

}  // namespace oomrec::recorder
