#include "recorder/failures/exceptions.h"

#include "common/system/files.h"
#include "recorder/failures/failure_table.h"
#include "recorder/failures/failures.h"
#include "recorder/helper/from_process.h"
#include "recorder/state/callbacks.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

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

// The thread's latest refusal, if it is later than number `since`.
Refusal* refusal_since(ThreadState* thread, std::uint32_t since) noexcept {
  if (thread == nullptr || thread->refusal.time_ns == 0) return nullptr;
  return thread->refusal.number > since ? &thread->refusal : nullptr;
}

// Completes the bundle that tells the refusal. Where that tells an earlier one of its kind, of
// which an exception came, too, this one gets a bundle of its own if it is time for one. Nothing is
// told: there is no such bundle.
Told complete_told(InHook hook, Refusal& refusal, const bundle::ExceptionTexts& texts) noexcept {
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
    told.texts = bundle::complete_texts_of(hook, told.bundle, texts, bound_seconds());
  return told;
}

Told tell_of_refusal(InHook hook, Refusal& refusal, const bundle::ExceptionTexts& texts) noexcept {
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

Told tell_exception(InHook hook, const bundle::ExceptionTexts& texts, std::uint32_t since,
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

void forget_exceptions(InHook) noexcept { g_with_texts.store(0, std::memory_order_relaxed); }

}  // namespace oomrec::recorder
