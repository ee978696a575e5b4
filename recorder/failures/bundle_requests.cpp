#include "recorder/failures/bundle_requests.h"

#include "recorder/state/callbacks.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

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
