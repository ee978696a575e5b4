// A forked child: no session until it allocates enough, then one that begins with the inherited
// totals.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/recorder/forked.h"
#include "tests/unit/recorder/running.h"

#include "recorder/events/mappings.h"
#include "recorder/failures/exit.h"
#include "recorder/failures/failures.h"
#include "recorder/recorder.h"
#include "recorder/state/counters.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"

using namespace oomrec;
using namespace oomrec::running;
using doubles::t_stack;
using session::g_session;

namespace {

void parent_holds_something() {
  need(Mode::exact);
  if (totals(Space::heap).live_count >= 2) return;
  t_stack = 11;
  allocate(0x1000'0000, 20 * kMiB);
  allocate(0x2000'0000, 101);
  recorder::on_map(kHook, {Api::mmap, 0x7100'0000'0000, 6 * kMiB, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, false});
}

const std::uint64_t kStack11 = session::native_frame(doubles::t_module, 11);
const std::uint64_t kMarker = session::special_frame(session::SpecialFrame::inherited, 0);

}  // namespace

TEST_CASE("a child is only counted until its first MiB; its parent's session stays as it was") {
  parent_holds_something();
  const auto before = totals(Space::heap);
  const auto events = recorder::t_thread->lane->ring_next.load();
  for (const Way way : {Way::announced, Way::raw_clone}) {
    CHECK(in_child(way, []() -> const char* {
            for (std::uint64_t i = 0; i < 100; ++i) allocate(0x3000'0000 + i * 4096, 1000);
            EXPECT(!g_session.active());
            EXPECT(recorder::phase() == recorder::Phase::waiting);
            EXPECT(recorder::live_bytes(nullptr) >=
                   static_cast<std::int64_t>(26 * kMiB + 100 * 1000));
            return nullptr;
          }) == "");
  }
  CHECK(totals(Space::heap).live_bytes == before.live_bytes);
  CHECK(totals(Space::heap).allocated_count == before.allocated_count);
  CHECK(recorder::t_thread->lane->ring_next == events);
}

TEST_CASE(
    "a child's session begins with its parent's totals by holder, and nothing becomes negative") {
  parent_holds_something();
  for (const Way way : {Way::announced, Way::raw_clone}) {
    CHECK(in_child(way, []() -> const char* {
            allocate(0x3000'0000, 1000);  // before the session starts
            t_stack = 12;
            allocate(0x4000'0000, 2 * kMiB);
            EXPECT(g_session.active());
            EXPECT(g_session.header().pid == getpid());
            const auto heap = totals(Space::heap);
            EXPECT(heap.live_count == 4);
            EXPECT(heap.live_bytes > static_cast<std::int64_t>(22 * kMiB));
            EXPECT(totals(Space::map).live_bytes == static_cast<std::int64_t>(6 * kMiB));

            const std::uint64_t inherited_bytes = inherited_by(Space::heap);
            // Including what the child allocated before its session.
            EXPECT(inherited_bytes >= 20 * kMiB + 1101 && inherited_bytes < 20 * kMiB + 1400);
            EXPECT(inherited_by(Space::heap, kStack11) == usable(20 * kMiB));
            EXPECT(inherited_by(Space::heap, kMarker) == inherited_bytes - usable(20 * kMiB));
            EXPECT(inherited_by(Space::map) == 6 * kMiB);
            EXPECT(holder_of(12, Space::heap)->live_bytes == usable(2 * kMiB));

            release(0x1000'0000, 20 * kMiB);
            EXPECT(inherited_by(Space::heap, kStack11) == 0);
            EXPECT(inherited_by(Space::heap) == inherited_bytes - usable(20 * kMiB));
            release(0x2000'0000, 101);
            release(0x3000'0000, 1000);
            release(0x4000'0000, 2 * kMiB);
            recorder::on_unmap(kHook, Api::munmap, 0x7100'0000'0000, 6 * kMiB);
            EXPECT(totals(Space::heap).live_bytes == 0);
            EXPECT(totals(Space::heap).live_count == 0);
            EXPECT(totals(Space::map).live_bytes == 0);
            EXPECT(holders_agree() || inherited_bytes != 0);
            return nullptr;
          }) == "");
  }
}

TEST_CASE("inherited blocks that a child frees before its session starts are not in it") {
  parent_holds_something();
  CHECK(in_child(Way::announced, []() -> const char* {
          release(0x1000'0000, 20 * kMiB);
          allocate(0x4000'0000, 2 * kMiB);
          EXPECT(g_session.active());
          EXPECT(inherited_by(Space::heap) < 1400);
          return nullptr;
        }) == "");
}

TEST_CASE("a grandchild has its grandparent's stack below one marker") {
  parent_holds_something();
  CHECK(in_child(Way::announced, []() -> const char* {
          t_stack = 12;
          allocate(0x4000'0000, 2 * kMiB);
          EXPECT(inherited_by(Space::heap, kStack11) == usable(20 * kMiB));
          const int pid = fork();
          if (pid == 0) {
            recorder::on_fork_child(kHook);
            t_stack = 13;
            allocate(0x5000'0000, 2 * kMiB);
            bool right = inherited_by(Space::heap, kStack11) == usable(20 * kMiB);
            for (std::uint32_t i = 1; i < g_session.nodes.size(); ++i) {
              const session::Node node = g_session.node(i);
              if (node.frame == kStack11)
                right = right && g_session.node(node.parent).frame == kMarker &&
                        g_session.node(g_session.node(node.parent).parent).parent == 0;
            }
            g_session.remove_file(kHook);
            _exit(right ? 0 : 1);
          }
          int status = 0;
          waitpid(pid, &status, 0);
          EXPECT(status == 0);
          return nullptr;
        }) == "");
}

TEST_CASE("a failure starts the child's session at once, and a grandchild gets one too") {
  parent_holds_something();
  CHECK(in_child(Way::announced, []() -> const char* {
          recorder::on_failure(kHook, {Space::heap, Api::malloc, 77}, ENOMEM,
                               recorder::FailedBy::system);
          EXPECT(g_session.active());
          EXPECT(g_session.failures.size() == 2);
          EXPECT(g_session.failures.at(1).bytes == 77);
          const std::int64_t live = totals(Space::heap).live_bytes;
          const int pid = fork();
          if (pid == 0) {
            recorder::on_fork_child(kHook);
            allocate(0x5000'0000, kMiB);
            const bool right =
                g_session.active() && g_session.failures.size() == 1 &&
                totals(Space::heap).live_bytes == live + static_cast<std::int64_t>(kMiB + 16);
            g_session.remove_file(kHook);
            _exit(right ? 0 : 1);
          }
          int status = 0;
          waitpid(pid, &status, 0);
          EXPECT(status == 0);
          return nullptr;
        }) == "");
}

TEST_CASE("children are left unrecorded on request") {
  parent_holds_something();
  recorder::g_state.options.children = false;
  CHECK(in_child(Way::raw_clone, []() -> const char* {
          allocate(0x4000'0000, 2 * kMiB);
          EXPECT(!recorder::is_active());
          return nullptr;
        }) == "");
  recorder::g_state.options.children = true;
}

TEST_CASE("a vfork child changes nothing in its parent's session") {
  parent_holds_something();
  const int pid = vfork();
  if (pid == 0) {
    recorder::before_exec(kHook);
    recorder::on_exit(kHook, 5);
    _exit(0);
  }
  waitpid(pid, nullptr, 0);
  CHECK(g_session.header().state == static_cast<std::uint32_t>(session::State::running));
  recorder::before_exec(kHook);
  CHECK(g_session.header().state == static_cast<std::uint32_t>(session::State::replaced));
  recorder::exec_failed(kHook);
  CHECK(g_session.header().state == static_cast<std::uint32_t>(session::State::running));
}
