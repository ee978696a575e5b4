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

void mark_with_texts(std::uint64_t bundle) noexcept {
  g_with_texts.fetch_or(std::uint32_t{1} << (bundle % 32), std::memory_order_relaxed);
}
bool has_texts(std::uint64_t bundle) noexcept {
  return (g_with_texts.load(std::memory_order_relaxed) >> (bundle % 32) & 1) != 0;
}

// The thread's latest failure, if it is later than number `since`.
FailedRequest* refusal_since(ThreadState* thread, std::uint32_t since) noexcept {
  if (thread == nullptr || thread->failed.time_ns == 0) return nullptr;
  return thread->failed.number > since ? &thread->failed : nullptr;
}

// Completes the bundle that tells the failure. Where that tells an earlier one of its kind, of
// which an exception came, too, this one gets a bundle of its own if it is time for one. Nothing is
// told: there is no such bundle.
WrittenBundle complete_reported(InHook hook, FailedRequest& failed,
                                const bundle::ExceptionTexts& texts) noexcept {
  failed.settled = true;
  ensure_entry(hook, failed);
  WrittenBundle written;
  written.bundle = bundle_of(failed);
  if (written.bundle == 0) return {};
  if (!failed.raised && has_texts(written.bundle)) {
    if (!bundle_is_due(system::monotonic_ns())) return written;
    add_new_entry(hook, failed);
    if (bundle_of(failed) == 0) return {};
    return written;
  }
  failed.raised = true;
  mark_with_texts(written.bundle);
  if (wait_for_writer(writing_deadline_ns()))  // that bundle may be on its way
    written.texts = bundle::complete_texts_of(hook, written.bundle, texts, bound_seconds());
  return written;
}

WrittenBundle write_or_complete(InHook hook, FailedRequest& failed,
                                const bundle::ExceptionTexts& texts) noexcept {
  if (const WrittenBundle written = complete_reported(hook, failed, texts); written.bundle != 0)
    return written;
  bundle::Cause cause = cause_of(failed.entry, failed);
  cause.texts = &texts;
  const WrittenBundle written = write_requested(hook, cause);
  if (written.bundle == 0) return written;
  failed.raised = true;
  mark_with_texts(written.bundle);
  return written;
}

}  // namespace

WrittenBundle report_exception(InHook hook, const bundle::ExceptionTexts& texts,
                               std::uint32_t since, bool any_thread) noexcept {
  if (phase() == Phase::waiting) begin_waiting_session(hook);
  if (phase() != Phase::active) return {};
  if (since > failure_count(hook)) since = 0;  // a number of a parent's session
  FailedRequest other;
  FailedRequest* failed = refusal_since(current_thread(hook), since);
  if (failed == nullptr && any_thread && claim_newest(since, other)) failed = &other;
  if (failed != nullptr) {
    const WrittenBundle written = write_or_complete(hook, *failed, texts);
    mark_raised(*failed);
    return written;
  }
  bundle::Cause cause;
  cause.trigger = Trigger::exception;
  cause.texts = &texts;
  return write_requested(hook, cause);
}

void reset_exceptions_after_fork(InHook) noexcept {
  g_with_texts.store(0, std::memory_order_relaxed);
}

}  // namespace oomrec::recorder
