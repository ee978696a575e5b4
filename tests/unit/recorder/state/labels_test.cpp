// Labels and groups of threads, and notifications of waiters.
#include "recorder/state/labels.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "common/session/view.h"
#include "common/system/files.h"
#include "recorder/limits/thresholds.h"
#include "recorder/recorder.h"
#include "recorder/state/counters.h"
#include "recorder/state/notifications.h"
#include "recorder/state/thread_state.h"
#include "tests/unit/recorder/running.h"

using namespace oomrec::recorder;
using namespace oomrec::running;
using namespace oomrec;
using running::kHook;
using session::g_session;

// --- Labels on stacks, and notifications of waiters

namespace {

// The label of an allocation of this thread.
std::string now_under() {
  ThreadState* const thread = current_thread(kHook);
  REQUIRE(thread != nullptr);
  return std::string{label_of(thread->root(kHook))};
}

std::string under_in_another_thread() {
  std::string label;
  std::thread{[&] { label = now_under(); }}.join();
  return label;
}

}  // namespace

TEST_CASE("labels nest, and an extra pop does no harm") {
  running::need(Mode::sampled);
  CHECK(now_under().empty());
  push_context(kHook, "epoch 3");
  push_context(kHook, "batch 7");
  CHECK(now_under() == "batch 7");
  pop_context(kHook);
  CHECK(now_under() == "epoch 3");
  for (int i = 0; i < 3; ++i) pop_context(kHook);
  CHECK(now_under().empty());
  for (int i = 0; i < 40; ++i) push_context(kHook, "level " + std::to_string(i));
  CHECK(now_under() == "level 15");
  for (int i = 0; i < 39; ++i) pop_context(kHook);
  CHECK(now_under() == "level 0");
  pop_context(kHook);
  CHECK(now_under().empty());
}

TEST_CASE("a thread without a label has that of the thread that pushed last") {
  running::need(Mode::sampled);
  push_context(kHook, "main's");
  CHECK(under_in_another_thread() == "main's");
  std::thread{[] {
    push_context(kHook, "worker's");
    CHECK(now_under() == "worker's");
    CHECK(under_in_another_thread() == "worker's");
    pop_context(kHook);
    CHECK(now_under() == "main's");
  }}.join();
  CHECK(under_in_another_thread() == "main's");
  pop_context(kHook);
  CHECK(under_in_another_thread().empty());
}

TEST_CASE("texts are cut at whole characters, and there may be any number over time") {
  running::need(Mode::sampled);
  push_context(kHook, std::string(255, 'x') + "ä");
  CHECK(now_under() == std::string(255, 'x'));
  pop_context(kHook);
  int wrong = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string label = "label " + std::to_string(i);
    push_context(kHook, label);
    wrong += now_under() != label;
    pop_context(kHook);
  }
  CHECK(wrong == 0);
  push_context(kHook, "label 1000");
  CHECK(now_under() == "label 1000");
  pop_context(kHook);
}

TEST_CASE("a waiter is woken within ten milliseconds") {
  running::need(Mode::sampled);
  std::uint64_t longest = 0;
  for (int round = 0; round < 20; ++round) {
    const std::uint32_t seen = wait_for_notification(0, 0);
    std::uint64_t woken = 0;
    std::thread waiter{[&] {
      CHECK(wait_for_notification(seen, 5000) != seen);
      woken = system::monotonic_ns();
    }};
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const std::uint64_t raised = system::monotonic_ns();
    notify_waiters(kHook);
    waiter.join();
    longest = round == 0 ? woken - raised : std::min(longest, woken - raised);
  }
  CHECK(longest < 10'000'000);
}

TEST_CASE("crossing a percentage of the soft limit is noticed when totals are published") {
  running::need(Mode::sampled);
  const auto live = static_cast<std::uint64_t>(live_bytes(nullptr));
  const std::uint64_t limit = 10 * (live + 8 * running::kMiB);
  set_soft_limit(kHook, limit);
  REQUIRE(add_threshold(kHook, 50));
  const std::uint32_t seen = wait_for_notification(0, 0);
  std::uint64_t address = 0x7000'0000'0000;
  const auto grow_to = [&](std::uint64_t bytes) {
    for (auto now = static_cast<std::uint64_t>(live_bytes(nullptr)); now < bytes;
         now += running::kMiB)
      running::allocate(address += 2 * running::kMiB, running::kMiB);
  };
  grow_to(limit / 100 * 45);
  CHECK(wait_for_notification(seen, 0) == seen);
  grow_to(limit / 100 * 52);
  CHECK(wait_for_notification(seen, 0) == seen + 1);
  grow_to(limit / 100 * 60);
  CHECK(wait_for_notification(seen, 0) == seen + 1);  // once
  REQUIRE(remove_threshold(kHook, 50));
  set_soft_limit(kHook, 0);
}

TEST_CASE("publishing totals does not clear a percentage that another limit has crossed") {
  running::need(Mode::sampled);
  std::uint64_t pages = 0;
  std::ifstream{"/proc/self/statm"} >> pages;
  rlimit before;
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  const rlimit near{pages * 4096 / 8 * 10, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_AS, &near) == 0);
  set_soft_limit(kHook, std::uint64_t{1} << 40);
  REQUIRE(add_threshold(kHook, 50));
  const std::uint32_t seen = wait_for_notification(0, 0);
  for (int i = 0; i < 50; ++i) {
    running::allocate(0x7100'0000'0000, running::kMiB);
    running::release(0x7100'0000'0000, running::kMiB);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  CHECK(wait_for_notification(seen, 0) == seen);
  setrlimit(RLIMIT_AS, &before);
  REQUIRE(remove_threshold(kHook, 50));
  set_soft_limit(kHook, 0);
}

TEST_CASE("in a forked child the first thread has labels, and a waiter sees its session start") {
  running::need(Mode::sampled);
  push_context(kHook, "main's");  // one of the 4,096
  const pid_t child = fork();
  if (child == 0) {
    on_fork_child(kHook);
    push_context(kHook, "child's");
    std::thread{[] {
      for (int i = 0; i < 100; ++i) push_context(kHook, "another thread's");
      pop_context(kHook);
    }}.join();
    const std::uint64_t began = system::monotonic_ns();
    std::uint64_t waited = 0;
    std::thread waiter{[&] {
      wait_for_notification(0, 5000);
      waited = system::monotonic_ns() - began;
    }};
    running::allocate(0x7200'0000'0000, 2 * running::kMiB);
    const bool labelled = now_under() == "child's";
    pop_context(kHook);
    const bool popped = now_under() == "main's";
    // The word is still 0, so it waits until a notification.
    usleep(150'000);
    notify_waiters(kHook);
    waiter.join();
    _exit(!labelled ? 1 : !popped ? 2 : waited < 1'000'000'000 ? 0 : 3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  pop_context(kHook);
}

// --- Groups of threads, by their names

namespace {

std::string name_of_group(std::uint32_t node) {
  return std::string{g_session.view().string(session::argument_of(g_session.node(node).frame))};
}

}  // namespace

TEST_CASE("when there are too many names, further ones are other threads") {
  need(Mode::sampled);
  const std::uint32_t main = recorder::group_node(kHook, "main");
  std::set<std::uint32_t> groups;
  for (unsigned i = 0; i < 1000; ++i) {
    const std::string name = "worker-" + std::to_string(i);
    const std::uint32_t group = recorder::group_node(kHook, name);
    const std::string found = name_of_group(group);
    REQUIRE((found == name || (i > 200 && found == "other threads")));
    groups.insert(group);
  }
  CHECK(groups.size() > 200);
  CHECK(groups.size() < 256);
  CHECK(recorder::group_node(kHook, "main") == main);
  CHECK(name_of_group(recorder::group_node(kHook, "worker-7")) == "worker-7");
  CHECK(name_of_group(recorder::group_node(kHook, "forgotten stacks")) == "forgotten stacks");
  CHECK(name_of_group(recorder::group_node(kHook, "late")) == "other threads");
}
