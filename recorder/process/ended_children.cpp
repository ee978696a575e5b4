#include "recorder/process/ended_children.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <iterator>

#include "common/system/files.h"
#include "recorder/session/reuse.h"
#include "recorder/session/writer.h"
#include "recorder/state/clock.h"
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

}  // namespace oomrec::recorder
