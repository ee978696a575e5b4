#include "recorder/process/ended_processes.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <iterator>

#include "common/limits/health.h"
#include "common/session/notable.h"
#include "common/system/files.h"
#include "common/system/mutex.h"
#include "common/system/syscalls.h"
#include "recorder/session/reuse.h"
#include "recorder/session/writer.h"
#include "recorder/stack/stack.h"
#include "recorder/state/clock.h"
#include "recorder/state/node_scope.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {
namespace {

using session::EndedChild;
using session::g_session;
using session::Header;

constexpr int kSignals[] = {SIGKILL, SIGBUS, SIGSEGV, SIGABRT, SIGILL, SIGTRAP, SIGTERM};

bool is_recent(const EndedChild& child, std::uint64_t now_ns) noexcept {
  const std::uint64_t then_ns = child.time_ns.load(std::memory_order_acquire);
  return then_ns != 0 && now_ns - then_ns <= kChildIsRecentNs;
}

}  // namespace

void record_ended_child(Header& header, int pid, int wait_status, std::uint64_t now_ns) noexcept {
  const bool of_interest =
      WIFSIGNALED(wait_status) && std::find(std::begin(kSignals), std::end(kSignals),
                                            WTERMSIG(wait_status)) != std::end(kSignals);
  if (!of_interest) return;
  const std::uint32_t number = header.ended_count.fetch_add(1, std::memory_order_relaxed);
  EndedChild& child = header.ended[number % session::kEndedChildren];
  if (is_recent(child, now_ns)) return;
  session::rewrite(child.time_ns, now_ns, [&]() noexcept {
    child.pid = pid;
    child.wait_status = wait_status;
  });
}

bool lost_child_recently(const Header& header, std::uint64_t now_ns) noexcept {
  return std::any_of(std::begin(header.ended), std::end(header.ended),
                     [&](const EndedChild& child) { return is_recent(child, now_ns); });
}

void on_child_status(InHook hook, int pid, int wait_status) noexcept {
  if (phase() != Phase::active) return;
  record_ended_child(g_session.header(), pid, wait_status, system::monotonic_ns());
  ThreadState* const thread = current_thread(hook);
  if (thread == nullptr) return;
  maybe_read_clock(hook, *thread);
  append_event(*thread, EventKind::mark, Api::fork, static_cast<std::uint64_t>(pid),
               static_cast<std::uint32_t>(wait_status), 0);
}

using session::g_session;
using session::SentSignal;

namespace {

struct Sent {
  system::Mutex lock;
  std::uint32_t count = 0;  // so far; the latest are in the table
};
constinit Sent g_sent;

}  // namespace

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
  if (phase() != Phase::active) return;
  ThreadState* const thread = current_thread(hook);
  const NodeScope nodes{hook, thread};
  const std::uint32_t node =
      thread != nullptr ? stack::capture(hook, thread->stacks, thread->root(hook)) : 0;
  const std::uint64_t now = system::monotonic_ns();
  const system::MutexGuard guard(g_sent.lock);
  if (!guard) return;
  std::uint32_t entry = 1 + g_sent.count++ % session::kSentSignals;
  if (entry < g_session.sent_signals.size()) {  // the oldest gives way
    SentSignal& sent = g_session.sent_signals.at(entry);
    session::rewrite(std::atomic_ref(sent.time_ns), now, [&]() noexcept {
      sent.pid = pid;
      sent.signal = signal;
      sent.resident_bytes = resident_bytes;
      sent.node = node;
    });
    return;
  }
  g_session.sent_signals.append(hook, entry, [&](SentSignal& sent) noexcept {
    sent = {now, pid, signal, resident_bytes, node, 0};
  });
}

void reset_sent_signals_after_fork(InHook) noexcept {
  g_sent.lock.unlock();  // its owner may not exist in the child
  g_sent.count = 0;
}

bool has_ended_a_large_process(InHook) noexcept {
  for (std::uint32_t entry = g_session.sent_signals.size(); entry-- > 1;)
    if (g_session.sent_signals.at(entry).resident_bytes >= session::kNotableBytes) return true;
  return false;
}

}  // namespace oomrec::recorder
