#include "recorder/process/sent_signals.h"

#include <signal.h>

#include "common/limits/health.h"
#include "common/session/notable.h"
#include "common/system/files.h"
#include "common/system/syscalls.h"
#include "recorder/session/writer.h"
#include "recorder/stack/stack.h"
#include "recorder/state/node_scope.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

using session::g_session;
using session::SentSignal;

bool may_end_another(int pid, int signal) noexcept {
  return pid > 0 && (signal == SIGTERM || signal == SIGKILL) && pid != system::call(SYS_getpid);
}

std::uint64_t resident_bytes_of(InHook hook, int pid) noexcept {
  if (phase() != Phase::active) return 0;
  session::Health health{};
  limit::read_quick_health(hook, {}, health, pid);
  return health.rss_bytes.load(std::memory_order_relaxed);
}

void on_signal_sent(InHook hook, int pid, int signal, std::uint64_t resident_bytes) noexcept {
  if (phase() != Phase::active || g_session.sent_signals.size() > session::kSentSignals) return;
  ThreadState* const thread = current_thread(hook);
  const NodeScope nodes{hook, thread};
  const std::uint32_t node =
      thread != nullptr ? stack::capture(hook, thread->stacks, thread->root(hook)) : 0;
  std::uint32_t entry = 0;
  g_session.sent_signals.append(hook, entry, [&](SentSignal& sent) noexcept {
    sent = {system::monotonic_ns(), pid, signal, resident_bytes, node, 0};
  });
}

bool has_ended_a_large_process(InHook) noexcept {
  for (std::uint32_t entry = g_session.sent_signals.size(); entry-- > 1;)
    if (g_session.sent_signals.at(entry).resident_bytes >= session::kNotableBytes) return true;
  return false;
}

}  // namespace oomrec::recorder
