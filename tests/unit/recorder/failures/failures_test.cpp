// FailureTable: one record per stack, counted repeats, rate-limited bundles, always one for the
// last.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "recorder/events/heap.h"
#include "recorder/failures/bundle_scheduler.h"
#include "recorder/failures/episode.h"
#include "recorder/failures/exceptions.h"
#include "recorder/failures/failure_table.h"
#include "recorder/failures/failures.h"
#include "recorder/limits/thresholds.h"
#include "recorder/runtimes/native_end.h"
#include "recorder/runtimes/php.h"
#include "recorder/state/failed_request.h"
#include "recorder/state/labels.h"
#include "recorder/state/request.h"
#include "recorder/state/thread_state.h"
#include "tests/unit/recorder/running.h"

using namespace oomrec;
using namespace oomrec::running;
using doubles::g_bundles;
using doubles::t_stack;
using session::Failure;
using session::g_session;

namespace {

void fail_request(std::uint32_t stack, std::uint64_t bytes, bool probe = false,
                  Api api = Api::malloc) {
  t_stack = stack;
  recorder::on_failure(kHook, {Space::heap, api, bytes, probe}, ENOMEM, recorder::FailedBy::system);
}

bool admits(std::uint64_t bytes) {
  recorder::Request request{Space::heap, Api::malloc, bytes};
  return recorder::admits(kHook, request, bytes);
}

void warn_near_limit() {
  bundle::Cause cause;
  cause.trigger = Trigger::near_limit;
  recorder::write_bundle(kHook, cause, recorder::kWhenDue);
}

struct Fixture {
  Fixture() {
    need(Mode::sampled);
    recorder::reset_failures_after_fork(kHook);
    g_bundles = {};
    base = g_session.failures.size();
  }
  std::uint32_t entries() const { return g_session.failures.size() - base; }
  Failure& entry(std::uint32_t i) const { return g_session.failures.at(base + i); }
  std::uint32_t base;
};

}  // namespace

TEST_CASE("a failure is recorded with its evidence and gets a bundle") {
  Fixture f;
  recorder::set_soft_limit(kHook, 0);
  fail_request(1, 12345);
  REQUIRE(f.entries() == 1);
  const Failure& failure = f.entry(0);
  CHECK(failure.bytes == 12345);
  CHECK(failure.error == ENOMEM);
  CHECK(failure.vm_bytes > 0);
  CHECK(failure.rss_bytes > 0);
  CHECK(failure.ram_bytes > 0);
  CHECK(failure.rlimit_as_bytes != 0);
  CHECK(failure.soft_limit_bytes == session::kUnlimited);
  CHECK(session::offset_of(g_session.node(failure.node).frame) == 1);
  CHECK(failure.bundle != 0);
  CHECK(g_bundles.written == 1);
  CHECK(g_bundles.last.failure == f.base);
  CHECK(g_bundles.last.trigger == Trigger::allocation_failed);
}

TEST_CASE("a holder is an estimate from its first sampled block") {
  need(Mode::sampled);
  t_stack = 901;
  allocate(0x9000'0000, 1 << 20);
  REQUIRE(holder_of(901, Space::heap) != nullptr);
  CHECK((holder_of(901, Space::heap)->flags & session::kHolderEstimated) == 0);
  for (std::uint64_t i = 1; i <= 2'000; ++i) allocate(0x9000'0000 + i * 0x10000, 60'000);
  CHECK(holder_of(901, Space::heap)->live_count > 1);
  CHECK((holder_of(901, Space::heap)->flags & session::kHolderEstimated) != 0);
  release(0x9000'0000, 1 << 20);
  for (std::uint64_t i = 1; i <= 2'000; ++i) release(0x9000'0000 + i * 0x10000, 60'000);
}

TEST_CASE("a repeat is only counted; another API at the same stack is another failure") {
  Fixture f;
  const std::uint64_t total = g_session.header().failures_total;
  for (int i = 0; i < 10; ++i) fail_request(2, 100);
  CHECK(f.entries() == 1);
  CHECK(f.entry(0).repeats == 9);
  CHECK(f.entry(0).last_ns >= f.entry(0).time_ns);
  CHECK(g_session.header().failures_total - total == 10);
  CHECK(g_bundles.written == 1);
  fail_request(2, 100, false, Api::calloc);
  CHECK(f.entries() == 2);
}

TEST_CASE("a probe is recorded and counted, and writes nothing") {
  Fixture f;
  const std::uint64_t probes = g_session.header().probes_total;
  fail_request(3, 100, true);
  CHECK(f.entry(0).flags == session::kFailureProbe);
  CHECK(g_session.header().probes_total - probes == 1);
  CHECK(g_bundles.written == 0);
  recorder::report_last_failure(kHook, 1);
  CHECK(g_bundles.written == 0);
}

TEST_CASE("the last failure gets a bundle at the end, if it has none yet") {
  Fixture f;
  g_bundles.lasts_ms = 5;
  for (std::uint32_t stack = 10; stack < 14; ++stack) {
    fail_request(stack, 1000 + stack);
    recorder::recover(kHook);
  }
  CHECK(g_bundles.written == 3);  // immediately; the fourth has to wait
  CHECK(f.entry(3).bundle == 0);
  CHECK_FALSE(recorder::last_failure_reported());
  recorder::report_last_failure(kHook, 3);
  CHECK(g_bundles.written == 4);
  CHECK(g_bundles.last.failure == f.base + 3);
  CHECK(g_bundles.last.outcome == OutcomeKind::exited);
  CHECK(g_bundles.last.outcome_value == 3);
  CHECK(recorder::last_failure_reported());
  recorder::report_last_failure(kHook, 3);
  CHECK(g_bundles.written == 4);
}

TEST_CASE("after-shocks are told in the bundle of the failure that they follow from") {
  Fixture f;
  fail_request(80, 1 << 20);
  const std::uint32_t root = f.entry(0).bundle;
  fail_request(81, 200 << 10);  // the traceback
  std::thread other(fail_request, 82, 2 << 20, false, Api::malloc);
  other.join();
  CHECK(g_bundles.written == 1);
  for (const std::uint32_t i : {1U, 2U}) {
    CHECK(f.entry(i).bundle == root);
    CHECK(f.entry(i).flags == session::kFailureAftershock);
  }
  CHECK((f.entry(0).flags & session::kFailureAftershock) == 0);
  CHECK(recorder::last_failure_reported());
  const facts::Aftershocks aftershocks = bundle::aftershocks_of(g_session.view(), f.base);
  CHECK(aftershocks.count == 2);
  CHECK(aftershocks.last_after_ms < recorder::kSameMomentNs / 1'000'000);
  recorder::report_last_failure(kHook, 1);
  recorder::complete_outcome_at_end(kHook, 1, system::monotonic_ns());
  CHECK(g_bundles.written == 1);
  CHECK(g_bundles.outcome == OutcomeKind::exited);
}

TEST_CASE("after-shocks of more kinds than the table holds are of one episode") {
  Fixture f;
  fail_request(1000, 1 << 20);
  for (std::uint32_t stack = 1001; stack < 1700; ++stack) fail_request(stack, 100);
  CHECK(f.entries() < 600);
  recorder::report_last_failure(kHook, 1);
  CHECK(g_bundles.written == 1);
  recorder::recover(kHook);
  fail_request(1700, 100);
  recorder::report_last_failure(kHook, 1);
  CHECK(g_bundles.written == 2);
}

TEST_CASE("of a kind that comes when the table is full there is an entry if a bundle is due") {
  Fixture f;
  for (std::uint32_t stack = 1; stack <= 2000; ++stack) fail_request(stack, 100, true);
  CHECK(f.entries() == 256);  // probes leave room
  for (std::uint32_t stack = 3000; stack < 4000; ++stack) fail_request(stack, 100);
  CHECK(f.entries() == 512);  // a root, and its after-shocks
  CHECK(g_bundles.written == 1);
  recorder::recover(kHook);
  fail_request(5000, 211);
  REQUIRE(f.entries() == 513);
  CHECK(f.entry(512).bytes == 211);
  CHECK(g_bundles.written == 2);
  CHECK(g_bundles.last.failure == f.base + 512);
  recorder::report_last_failure(kHook, 1);
  CHECK(g_bundles.written == 2);
}

TEST_CASE("a crash in the wake of an after-shock follows from the root") {
  Fixture f;
  fail_request(83, 1 << 20);
  fail_request(84, 16);
  CHECK(recorder::current_thread(kHook)->failed.entry == f.base);
  std::thread other([&] {
    fail_request(85, 16);
    CHECK(recorder::current_thread(kHook)->failed.entry == f.base + 2);
  });
  other.join();
}

TEST_CASE("a failure of a process that has gone on since is a root") {
  constexpr std::uint64_t kHeld = 0xa000'0000;
  Fixture f;
  recorder::set_soft_limit(kHook, 0);
  t_stack = 95;
  allocate(kHeld, 200 << 20);
  fail_request(90, 1 << 20);
  REQUIRE(g_bundles.written == 1);
  const auto is_root = [&] {
    const std::uint32_t written = g_bundles.written;
    fail_request(91, 100);
    return g_bundles.written > written;
  };
  std::uint64_t more = 0;
  SUBCASE("what its handling takes is no sign of that") {
    allocate(kHeld + (1 << 30), more = 31 << 20);
    CHECK_FALSE(is_root());
    CHECK(g_bundles.completed == 0);
  }
  SUBCASE("it holds more") {
    allocate(kHeld + (1 << 30), more = 33 << 20);
    SUBCASE("the thread of the failure") {
      CHECK(is_root());
      CHECK(g_bundles.outcome == OutcomeKind::recovered);
      CHECK(g_bundles.completed == 1);
    }
    SUBCASE("another thread, which was at work before") {
      bool root = true;
      std::thread([&] { root = is_root(); }).join();
      CHECK_FALSE(root);
      SUBCASE("which holds half of it") {
        allocate(kHeld + (2ULL << 30), 100 << 20);
        std::thread([&] { root = is_root(); }).join();
        release(kHeld + (2ULL << 30), 100 << 20);
        CHECK(root);
      }
    }
    SUBCASE("the same kind: only counted, but told at the end") {
      fail_request(90, 1 << 20);
      CHECK(g_bundles.written == 1);
      recorder::report_last_failure(kHook, 1);
      CHECK(g_bundles.written == 2);
    }
  }
  SUBCASE("it has freed, and filled that again") {
    release(kHeld, 200 << 20);
    recorder::lower_least_live_bytes(recorder::live_bytes(recorder::current_thread(kHook)));
    allocate(kHeld, 200 << 20);
    CHECK(is_root());
  }
  SUBCASE("it has only freed") {
    release(kHeld, 200 << 20);
    recorder::lower_least_live_bytes(recorder::live_bytes(recorder::current_thread(kHook)));
    CHECK_FALSE(is_root());
    allocate(kHeld, 200 << 20);
  }
  release(kHeld, 200 << 20);
  if (more != 0) release(kHeld + (1 << 30), more);
}

TEST_CASE("a failure after a recovery is a root, also if its kind was an after-shock before") {
  Fixture f;
  fail_request(86, 1 << 20);
  fail_request(87, 100);
  recorder::recover(kHook);
  fail_request(87, 100);
  CHECK(g_bundles.written == 2);
  CHECK(f.entries() == 3);
  CHECK(f.entry(2).flags == 0);
  CHECK(g_bundles.last.failure == f.base + 2);
}

TEST_CASE("an episode whose bundle could not be written has no after-shocks") {
  Fixture f;
  g_bundles.result = bundle::Result::no_space;
  fail_request(88, 1 << 20);
  g_bundles.result = bundle::Result::written;
  fail_request(89, 100);
  CHECK(g_bundles.written == 1);
  CHECK(f.entry(1).flags == 0);
}

TEST_CASE("which failures follow from an unresolved one") {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  session::Failure root{};
  root.bytes = 4 << 20;
  root.space = static_cast<std::uint8_t>(Space::heap);
  const auto follows = [&](std::uint64_t after_ns, std::uint64_t bytes, Space space = Space::heap) {
    return recorder::is_aftershock(root, after_ns, bytes, space);
  };
  CHECK(follows(kSecond / 10, 200 << 10));
  CHECK(follows(kSecond / 10, 1 << 30));  // another thread's, at the same moment
  CHECK(follows(9 * kSecond, 200 << 10));
  CHECK(follows(kSecond / 10, 4096, Space::map));
  CHECK_FALSE(follows(2 * kSecond, 4 << 20));  // the program wants so much again
  CHECK_FALSE(follows(11 * kSecond, 200 << 10));
  CHECK_FALSE(follows(60 * kSecond, 1 << 30));
  CHECK_FALSE(follows(kSecond / 10, 100, Space::cuda));

  root.bytes = 16 << 10;
  CHECK(follows(2 * kSecond, 1 << 20));  // an arena for a long traceback
  CHECK_FALSE(follows(2 * kSecond, 2 << 20));

  root.ram_bytes = 1 << 30;
  CHECK(follows(kSecond / 10, 200 << 10));
  root.bytes = std::uint64_t{1} << 40;  // impossible: memory was not short
  CHECK_FALSE(follows(kSecond / 10, 200 << 10));
  CHECK(follows(kSecond / 10, std::uint64_t{1} << 41));
}

TEST_CASE("a failure stays unreported if its bundle could not be written") {
  Fixture f;
  g_bundles.result = bundle::Result::no_space;
  fail_request(20, 5);
  CHECK(f.entry(0).bundle == 0);
  g_bundles.result = bundle::Result::written;
  recorder::report_last_failure(kHook, 1);
  CHECK(f.entry(0).bundle != 0);
}

TEST_CASE("the outcome is written into the last bundle once") {
  Fixture f;
  fail_request(40, 5);
  REQUIRE(g_bundles.written == 1);
  const std::uint64_t now = system::monotonic_ns();
  recorder::resolve_recovered(kHook, now + 9'000'000'000);
  CHECK(g_bundles.completed == 0);
  SUBCASE("it survives") {
    recorder::resolve_recovered(kHook, now + 11'000'000'000);
    recorder::resolve_recovered(kHook, now + 12'000'000'000);
    CHECK(g_bundles.outcome == OutcomeKind::recovered);
  }
  SUBCASE("it exits") {
    recorder::complete_outcome_at_end(kHook, 3, system::monotonic_ns());
    CHECK(g_bundles.outcome == OutcomeKind::exited);
  }
  recorder::complete_outcome_at_end(kHook, 3, system::monotonic_ns());
  CHECK(g_bundles.completed == 1);
}

TEST_CASE("an exit within ten seconds of the failure and of its bundle is no recovery") {
  Fixture f;
  g_bundles.lasts_ms = 5;
  fail_request(40, 5);
  SUBCASE("the bundle took long") {
    const std::uint64_t failed_ns = recorder::last_failure().time_ns;
    recorder::complete_outcome_at_end(kHook, 3, failed_ns + recorder::kRecoveredNs + 1);
    CHECK(g_bundles.outcome == OutcomeKind::exited);
  }
  SUBCASE("a warning had a bundle meanwhile") {
    warn_near_limit();
    recorder::complete_outcome_at_end(kHook, 3, system::monotonic_ns());
    CHECK(g_bundles.outcome == OutcomeKind::exited);
  }
  SUBCASE("later") {
    recorder::complete_outcome_at_end(kHook, 3,
                                      system::monotonic_ns() + recorder::kRecoveredNs + 1);
    CHECK(g_bundles.outcome == OutcomeKind::recovered);
  }
}

TEST_CASE("an exit after a warning is a recovery") {
  Fixture f;
  warn_near_limit();
  recorder::complete_outcome_at_end(kHook, 3, system::monotonic_ns());
  CHECK(g_bundles.completed == 1);
  CHECK(g_bundles.outcome == OutcomeKind::recovered);
}

TEST_CASE("dump writes on request") {
  Fixture f;
  CHECK(recorder::dump(kHook, "just so").number != 0);
  CHECK(g_bundles.last.trigger == Trigger::request);
  CHECK(g_bundles.last.reason == "just so");
  CHECK(g_bundles.last.failure == 0);
}

TEST_CASE("a bundle without a failure has its thread's label, unless it was requested") {
  Fixture f;
  recorder::push_context(kHook, "epoch 3");
  CHECK(recorder::warn(kHook, Trigger::near_limit));
  CHECK(g_bundles.last.label == "epoch 3");
  CHECK(recorder::report_exception(kHook, {}, recorder::last_failure_number(kHook),
                                   recorder::FailureOf::this_thread)
            .number != 0);
  CHECK(g_bundles.last.label == "epoch 3");
  CHECK(recorder::dump(kHook, "").number != 0);
  CHECK(g_bundles.last.label.empty());
  recorder::pop_context(kHook);
}

TEST_CASE("threads that request bundles at once get one each, with its number") {
  Fixture f;
  g_bundles.lasts_ms = 30;
  constexpr std::size_t kThreads = 6;
  std::uint64_t numbers[kThreads] = {};
  std::vector<std::thread> threads;
  for (std::uint64_t& number : numbers)
    threads.emplace_back([&number] { number = recorder::dump(kHook, "at once").number; });
  for (std::thread& thread : threads) thread.join();
  std::sort(std::begin(numbers), std::end(numbers));
  CHECK(numbers[0] != 0);
  CHECK(std::adjacent_find(std::begin(numbers), std::end(numbers)) == std::end(numbers));
  g_bundles.lasts_ms = 0;
}

TEST_CASE(
    "the soft limit fails a request, admits small ones afterwards, and is named as the cause") {
  Fixture f;
  recorder::set_soft_limit(kHook, 100 << 20);
  allocate(0x7000'0000, 90 << 20);
  CHECK(admits(5 << 20));
  CHECK_FALSE(admits(11 << 20));
  t_stack = 30;
  recorder::on_failure(kHook, {Space::heap, Api::malloc, 11 << 20}, ENOMEM,
                       recorder::FailedBy::recorder);
  CHECK(f.entry(0).flags == session::kFailureByRecorder);
  CHECK(f.entry(0).soft_limit_bytes == 100 << 20);
  CHECK(f.entry(0).live_bytes >= 90 << 20);
  CHECK(g_bundles.last.trigger == Trigger::soft_limit);
  allocate(0x7800'0000, 10 << 20);
  CHECK(admits(1000));
  CHECK_FALSE(admits(256 << 10));
  release(0x7000'0000, 90 << 20);
  CHECK(admits(64 << 20));
  release(0x7800'0000, 10 << 20);
  recorder::set_soft_limit(kHook, 0);
}

TEST_CASE("a flood of failures is cheap, on cached and new stacks, from two threads") {
  Fixture f;
  const auto flood = [](std::uint32_t stacks, std::uint32_t base) {
    for (std::uint32_t i = 0; i < 100'000; ++i) fail_request(base + i % stacks, 100);
  };
  const auto began = std::chrono::steady_clock::now();
  std::thread other(flood, 1000, 1000);
  flood(10, 5000);
  other.join();
  const auto lasted = std::chrono::steady_clock::now() - began;
  const auto each_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(lasted).count() / 200'000;
  MESSAGE("ns per failure: ", each_ns);
  CHECK(each_ns <
        200'000);  // far from what reading the evidence anew takes, on a busy machine, too
  // Bounded: 512 kinds, and those that came back as the root of an episode, of which a busy machine
  // has time for more.
  CHECK(f.entries() >= 512);
  CHECK(f.entries() < 600);
  CHECK(g_bundles.written < 60);
}

TEST_CASE("a crash completes the last bundle if it has the failure, else it gets a separate one") {
  Fixture f;
  session::Crash& crash = g_session.header().crash;
  crash.signal = SIGSEGV;
  fail_request(50, 5);
  const recorder::FailedRequest failed = recorder::current_thread(kHook)->failed;
  REQUIRE(failed.entry == f.base);
  SUBCASE("it reports it") {
    recorder::report_crash(kHook, failed);
    CHECK(g_bundles.completed == 1);
    CHECK(g_bundles.outcome == OutcomeKind::signal);
    CHECK(g_bundles.written == 1);
  }
  SUBCASE("another has been written since") {
    CHECK(recorder::dump(kHook, "").number != 0);
    recorder::report_crash(kHook, failed);
    CHECK(g_bundles.completed == 0);
    CHECK(g_bundles.written == 3);
    CHECK(g_bundles.last.trigger == Trigger::crash);
    CHECK(g_bundles.last.outcome_value == SIGSEGV);
    CHECK(g_bundles.last.failure == crash.failure);
    CHECK(g_session.failures.at(crash.failure).bytes == 5);
  }
  SUBCASE("there is none") {
    g_session.failures.at(failed.entry).bundle = 0;
    recorder::report_crash(kHook, failed);
    CHECK(g_bundles.written == 2);
    CHECK(crash.failure == failed.entry);
  }
  CHECK((crash.flags & session::kCrashInBundle) != 0);
  crash.signal = crash.flags = crash.failure = 0;
}

TEST_CASE("a thread knows its last failure, and whether the same stack succeeded since") {
  Fixture f;
  fail_request(60, 70'000);
  const recorder::FailedRequest& failed = recorder::current_thread(kHook)->failed;
  fail_request(61, 5, true);  // a probe changes nothing
  CHECK(failed.request.bytes == 70'000);
  t_stack = 62;
  allocate(0xa000'0000, 80'000);
  CHECK_FALSE(failed.served);
  t_stack = 60;
  allocate(0xa001'0000, 90'000);
  CHECK(failed.served);
  fail_request(60, 70'001);
  CHECK_FALSE(failed.served);
  CHECK(failed.request.bytes == 70'001);
  release(0xa000'0000, 80'000);
  release(0xa001'0000, 90'000);
}

TEST_CASE("an exception's text tells whether memory was short") {
  for (const char* message :
       {"out of memory: the model needs 64 TiB", "std::bad_alloc", "Cannot allocate memory"})
    CHECK(recorder::is_about_memory(message));
  for (const char* message : {"", "the shared memory segment has version 3, not 4",
                              "port allocation failed", "no memory map at 0x1000"})
    CHECK_FALSE(recorder::is_about_memory(message));
}

TEST_CASE("PHP's own error about its memory limit, and the same words of a script") {
  constexpr std::uint64_t kError = 1, kUserError = 256;
  alignas(8) char text[128] = {};                                             // a zend_string
  std::strcpy(text + 24, "Allowed memory size of 20971520 bytes exhausted");  // NOLINT
  std::uint64_t globals[] = {7, kError, reinterpret_cast<std::uint64_t>(text)};
  char message[64];
  CHECK(recorder::find_memory_error(kHook, globals, message));
  CHECK(std::string_view{message} == "Allowed memory size of 20971520 bytes exhausted");
  globals[1] = kUserError;
  CHECK_FALSE(recorder::find_memory_error(kHook, globals, message));
}
