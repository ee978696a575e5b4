#include "recorder/failures/exceptions.h"

#include "common/system/files.h"
#include "common/verdict/verdict.h"
#include "recorder/failures/episode.h"
#include "recorder/failures/failure_table.h"
#include "recorder/failures/failures.h"
#include "recorder/helper/from_process.h"
#include "recorder/state/callbacks.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

using session::g_session;

namespace {

// A bit for each bundle that has an exception's texts.
constinit std::atomic<std::uint32_t> g_with_texts{0};

constinit std::atomic<bool> g_reported{false};              // the program has reported one
constinit std::atomic<std::uint64_t> g_uncaught_bundle{0};  // number of report_uncaught()'s

void mark_with_texts(std::uint64_t bundle) noexcept {
  g_with_texts.fetch_or(std::uint32_t{1} << (bundle % 32), std::memory_order_relaxed);
}
bool has_texts(std::uint64_t bundle) noexcept {
  return (g_with_texts.load(std::memory_order_relaxed) >> (bundle % 32) & 1) != 0;
}

// The thread's latest failure, if it is later than number `since`: the root of its episode, or, if
// that is older, the after-shock.
FailedRequest* failure_since(ThreadState* thread, std::uint32_t since) noexcept {
  if (thread == nullptr) return nullptr;
  for (FailedRequest* failed : {&thread->failed, &thread->aftershock})
    if (failed->time_ns != 0 && failed->number > since) return failed;
  return nullptr;
}

// Completes the bundle that reports the failure; number 0: there is none. If that bundle reports an
// earlier failure of the same kind with its exception, and a bundle is due, this failure gets a new
// entry; so does an after-shock, because the bundle of its root is about another request.
WrittenBundle complete_reported(InHook hook, FailedRequest& failed,
                                const text::ExceptionTexts& texts) noexcept {
  failed.stage = FailureStage::resolved;
  ensure_entry(hook, failed);
  WrittenBundle written;
  written.number = bundle_of(failed);
  if (written.number == 0) return {};
  if (was_aftershock(failed)) {
    add_new_entry(hook, failed);
    if (bundle_of(failed) == 0) return {};
  }
  if (!failed.raised && has_texts(written.number)) {
    if (!bundle_is_due(system::monotonic_ns())) return written;
    add_new_entry(hook, failed);
    if (bundle_of(failed) == 0) return {};
    return written;
  }
  failed.raised = true;
  mark_with_texts(written.number);
  if (wait_for_writer(writing_deadline_ns()))  // that bundle may still be written
    written.has_texts = helper::complete_texts_of(hook, written.number, texts, bound_seconds());
  return written;
}

WrittenBundle write_or_complete(InHook hook, FailedRequest& failed,
                                const text::ExceptionTexts& texts) noexcept {
  if (const WrittenBundle written = complete_reported(hook, failed, texts); written.number != 0)
    return written;
  bundle::Cause cause = cause_of(failed.entry, failed);
  cause.texts = &texts;
  const WrittenBundle written = write_requested(hook, cause);
  if (written.number == 0) return written;
  failed.raised = true;
  mark_with_texts(written.number);
  return written;
}

}  // namespace

WrittenBundle report_exception(InHook hook, const text::ExceptionTexts& texts, std::uint32_t since,
                               FailureOf of, std::string_view reason) noexcept {
  g_reported.store(true, std::memory_order_relaxed);
  if (phase() == Phase::waiting) begin_waiting_session(hook);
  if (phase() != Phase::active) return {};
  if (since > failure_count(hook)) since = 0;  // a number of a parent's session
  FailedRequest other;
  FailedRequest* failed = failure_since(current_thread(hook), since);
  if (failed == nullptr && of == FailureOf::any_thread && claim_newest(since, other))
    failed = &other;
  if (failed != nullptr) {
    const WrittenBundle written = write_or_complete(hook, *failed, texts);
    mark_raised(*failed);
    return written;
  }
  bundle::Cause cause;
  cause.trigger = Trigger::exception;
  cause.reason = reason;
  cause.texts = &texts;
  return write_requested(hook, cause);
}

void report_uncaught(InHook hook, std::string_view type, bool is_of_worker) noexcept {
  if (g_reported.load(std::memory_order_relaxed) || has_failed_lately()) return;
  text::ExceptionTexts texts;
  texts.type = type;
  const WrittenBundle written =
      report_exception(hook, texts, 0, FailureOf::this_thread,
                       is_of_worker ? verdict::kReasonOfWorker : std::string_view{});
  g_uncaught_bundle.store(written.number, std::memory_order_relaxed);
}

bool has_reported_uncaught() noexcept {
  const std::uint64_t number = g_uncaught_bundle.load(std::memory_order_relaxed);
  return number != 0 &&
         number == g_session.header().bundles_written.load(std::memory_order_relaxed);
}

void reset_exceptions_after_fork(InHook) noexcept {
  g_reported.store(false, std::memory_order_relaxed);
  g_uncaught_bundle.store(0, std::memory_order_relaxed);
  g_with_texts.store(0, std::memory_order_relaxed);
}

}  // namespace oomrec::recorder
