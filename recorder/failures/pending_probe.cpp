#include "recorder/failures/pending_probe.h"

#include <algorithm>

#include "common/system/files.h"
#include "common/system/mutex.h"
#include "recorder/failures/failure_table.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {
namespace {

// An error path takes less: a traceback, a crash report.
constexpr std::uint64_t kMomentNs = 2'000'000'000;

struct PendingProbe {
  system::Mutex lock;
  FailedRequest probe;
  const ThreadState* thread;   // made it; a state is kept when its thread has ended
  std::uint64_t served_bytes;  // to that thread before
};
constinit PendingProbe g_pending{};

std::uint64_t served_bytes(const ThreadState& thread) noexcept {
  const auto& heap = thread.lane->spaces[static_cast<std::size_t>(Space::heap)];
  return heap.allocated_bytes.load(std::memory_order_relaxed) + thread.mapped_bytes;
}

// Whether a real failure already explains an end now.
bool is_explained(std::uint64_t now_ns) noexcept {
  const std::uint64_t failed_ns = last_failure().time_ns;
  return failed_ns != 0 && failed_ns + kRecoveredNs > now_ns;
}

// Takes the probe that the program seems to end of; time_ns is 0 if there is none.
FailedRequest take(const ThreadState* thread) noexcept {
  const std::uint64_t now_ns = system::monotonic_ns();
  if (is_explained(now_ns)) return {};
  const system::MutexGuard guard(g_pending.lock);
  if (!guard || g_pending.probe.time_ns == 0) return {};
  const FailedRequest probe = g_pending.probe;
  const bool is_served = served_bytes(*g_pending.thread) - g_pending.served_bytes >=
                         substitute_bytes(probe.request.bytes);
  const bool is_other_thread = thread != nullptr && thread != g_pending.thread;
  if (is_served || is_other_thread || probe.time_ns + kMomentNs < now_ns) return {};
  g_pending.probe = {};
  return probe;
}

}  // namespace

std::uint64_t substitute_bytes(std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kMessages = std::uint64_t{1} << 20;
  if (bytes == 0) return kMessages;  // mlockall names no size
  return std::min(bytes, std::max(bytes / 64, kMessages));
}

void store_probe(InHook, const FailedRequest& probe, const ThreadState& thread) noexcept {
  const system::MutexGuard guard(g_pending.lock);
  if (!guard) return;
  g_pending.probe = probe;
  g_pending.thread = &thread;
  g_pending.served_bytes = served_bytes(thread);
}

void promote_pending_probe(InHook hook) noexcept {
  FailedRequest probe = take(nullptr);
  if (probe.time_ns != 0) count_as_failure(hook, probe);
}

void promote_pending_probe(InHook hook, ThreadState& thread) noexcept {
  FailedRequest probe = take(&thread);
  if (probe.time_ns == 0) return;
  count_as_failure(hook, probe);
  thread.failed = probe;
}

void reset_pending_probe_after_fork(InHook) noexcept {
  g_pending.lock.unlock();
  g_pending.probe = {};
}

}  // namespace oomrec::recorder
