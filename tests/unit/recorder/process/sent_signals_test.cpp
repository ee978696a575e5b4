// What a process remembers of the signals by which it ends others.
#include "recorder/process/ended_processes.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/recorder/running.h"

using namespace oomrec;
using namespace oomrec::running;
using session::g_session;
using session::SentSignal;

TEST_CASE("only a signal that may end one other process is of interest") {
  for (const int signal : {SIGTERM, SIGKILL}) CHECK(recorder::may_end_another(4711, signal));
  for (const int signal : {0, SIGINT, SIGUSR1, SIGSTOP})
    CHECK_FALSE(recorder::may_end_another(4711, signal));
  for (const int group : {0, -1, -4711}) CHECK_FALSE(recorder::may_end_another(group, SIGTERM));
  CHECK_FALSE(recorder::may_end_another(getpid(), SIGTERM));
}

TEST_CASE("a signal is recorded with its sender's stack and the other's memory") {
  need(Mode::sampled);
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  CHECK(recorder::resident_bytes_of(kHook, child) > 100'000);
  const std::uint64_t resident = 123'456;  // not its own, which is large under a sanitizer
  const std::uint32_t entry = g_session.sent_signals.size();
  doubles::t_stack = 4321;
  const std::uint64_t before_ns = system::monotonic_ns();
  recorder::on_signal_sent(kHook, child, SIGTERM, resident);
  REQUIRE(g_session.sent_signals.size() == entry + 1);
  const SentSignal& sent = g_session.sent_signals.at(entry);
  CHECK(sent.pid == child);
  CHECK(sent.signal == SIGTERM);
  CHECK(sent.resident_bytes == resident);
  CHECK(sent.time_ns >= before_ns);
  CHECK(session::offset_of(g_session.node(sent.node).frame) == 4321);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(recorder::resident_bytes_of(kHook, child) == 0);
}

TEST_CASE("a session is worth keeping if it explains the end of a large process") {
  need(Mode::sampled);
  CHECK_FALSE(recorder::has_ended_a_large_process(kHook));
  recorder::on_signal_sent(kHook, 4711, SIGTERM, 16 * kMiB - 1);
  CHECK_FALSE(recorder::has_ended_a_large_process(kHook));
  recorder::on_signal_sent(kHook, 4712, SIGTERM, 16 * kMiB);
  recorder::on_signal_sent(kHook, 4713, SIGTERM, 0);
  CHECK(recorder::has_ended_a_large_process(kHook));
}

TEST_CASE("the latest stay") {
  need(Mode::sampled);
  constexpr std::uint32_t kSent = session::kSentSignals + 10;
  for (std::uint32_t i = 0; i < kSent; ++i)
    recorder::on_signal_sent(kHook, static_cast<int>(10'000 + i), SIGTERM, 0);
  CHECK(g_session.sent_signals.size() == session::kSentSignals + 1);
  std::uint32_t latest = 0;
  session::SentSignal sent{};
  for (std::uint32_t i = 1; g_session.view().read(session::TableId::sent_signals, i, sent); ++i)
    latest += sent.pid >= static_cast<int>(10'000 + 10);
  CHECK(latest >= session::kSentSignals - 10);  // a test before this one has sent some, too
}
