// Why a recorded parent ended its child, from the parent's recording.
#include "tools/bundles/store/parent_signal.h"

#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <string>

#include "common/session/notable.h"
#include "tests/unit/tools/recording_image.h"

using namespace oomrec;
using namespace oomrec::tools;

namespace {

constexpr std::uint64_t kMB = 1'000'000;
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr int kChild = 815;

// A parent that sent signals, and the header of its child, which began 10 s after it.
struct Parent : tests::RecordingImage {
  Parent() {
    child.pid = kChild;
    child.parent_pid = header().pid;
    child.start_ticks = header().start_ticks + 1000;
    child.start_monotonic_ns = header().start_monotonic_ns + 10 * kSecond;
    child.pid_namespace = header().pid_namespace;
    std::memcpy(child.boot_id, header().boot_id, sizeof child.boot_id);
    std::memcpy(child.host, header().host, sizeof child.host);
  }
  session::Header& header() { return session().header(); }
  std::uint64_t after(std::int64_t seconds) const {
    return child.start_monotonic_ns + static_cast<std::uint64_t>(seconds) * kSecond;
  }
  void arguments(std::string text) {
    for (char& letter : text)
      if (letter == ' ') letter = '\0';
    header().command_line = session().add_string(kHook, text + '\0');
  }
  void sent(int signal, std::int64_t second, std::uint64_t resident, std::uint32_t node = 0,
            int pid = kChild) {
    std::uint32_t entry = 0;
    REQUIRE(session().sent_signals.append(kHook, entry, [&](session::SentSignal& row) {
      row = {after(second), pid, signal, resident, node, 0};
    }));
  }
  void waited(int status, std::int64_t second) {
    header().ended[0].pid = kChild;
    header().ended[0].wait_status = status;
    header().ended[0].time_ns = after(second);
  }
  void lost_another(int status, std::int64_t second) {
    header().ended[1].pid = kChild + 1;
    header().ended[1].wait_status = status;
    header().ended[1].time_ns = after(second);
  }
  deaths::DeathObservation observed(int status = SIGTERM, bool was_growing = false) const {
    deaths::DeathObservation seen;
    seen.wait_status = status;
    return bundles::with_signal_from_parent(
        seen, child, {std::filesystem::path{path()}.parent_path()}, was_growing);
  }
  bool has_lost_another() const { return observed().parent_signal.after_another; }
  std::string evidence(int status = SIGTERM) const {
    return observed(status).parent_signal.evidence;
  }

  using RecordingImage::path;
  session::Header child{};
};

}  // namespace

TEST_CASE("the sender is known if the parent's recording has the signal that ended the child") {
  Parent parent;
  CHECK(parent.observed().sender == 0);
  parent.sent(SIGTERM, 5, 300 * kMB, 0, kChild + 1);
  parent.sent(SIGTERM, 0, 300 * kMB);  // before it was the child's pid
  CHECK(parent.observed().sender == 0);
  parent.sent(SIGTERM, 7, 300 * kMB);
  CHECK(parent.observed().sender == parent.header().pid);
  CHECK(parent.evidence() == "its parent " + std::to_string(parent.header().pid) +
                                 " sent SIGTERM when it had 286.1 MiB resident");
  CHECK_FALSE(parent.observed().parent_signal.for_memory);
  CHECK(parent.observed(SIGKILL).sender == 0);  // another one sent that
  CHECK(parent.observed(W_EXITCODE(1, 0)).sender == 0);
  SUBCASE("the pid's next process") {
    parent.waited(SIGTERM, 6);
    CHECK(parent.observed().sender == 0);
    parent.waited(SIGTERM, 8);
    CHECK(parent.observed().sender == parent.header().pid);
  }
  SUBCASE("another parent's child") {
    parent.child.parent_pid = 99;
    CHECK(parent.observed().sender == 0);
  }
}

TEST_CASE("a child at the limit among its parent's arguments was ended for its memory") {
  const struct {
    const char* arguments;
    bool for_memory;
    const char* evidence;
  } rows[] = {
      {"dask worker --memory-limit 300MB", true, ", 95 % of the parent's --memory-limit 300MB"},
      {"dask worker --memory-limit=300MB", true, ", 95 % of the parent's --memory-limit 300MB"},
      {"x --memory-limit 3e8", true, ", 95 % of the parent's --memory-limit 3e8"},
      {"x --memory-limit 0.3GB --n 4", true, ", 95 % of the parent's --memory-limit 0.3GB"},
      {"x --memory-limit 300m", true, ", 95 % of the parent's --memory-limit 300m"},
      {"x --memory-limit 287MiB", true, ", 95 % of the parent's --memory-limit 287MiB"},
      {"x --memory-limit 0.0003", true, ", 95 % of the parent's --memory-limit 0.0003"},  // of RAM
      {"x --memory-limit 302MB", false, ", 94 % of the parent's --memory-limit 302MB"},
      {"x --memory-limit 4GB", false, ", 7 % of the parent's --memory-limit 4GB"},
      {"x --memory-limit auto", false, "resident"},
      {"x --memory-limit 0", false, "resident"},
      {"x --memory-limit -1", false, "resident"},
      {"x --memory-limit nan", false, "resident"},
      {"x --memory-limit 1e300", false, "resident"},
      {"x --memory-limit 300parsecs", false, "resident"},
      {"x --memory-limits 300MB", false, "resident"},
      {"x --memory-limit", false, "resident"},
      {"x", false, "resident"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.arguments);
    Parent parent;
    parent.header().ram_bytes = 1'000'000 * kMB;
    parent.arguments(row.arguments);
    parent.sent(SIGTERM, 7, 286 * kMB);
    CHECK(parent.observed().parent_signal.for_memory == row.for_memory);
    CHECK(parent.evidence().ends_with(row.evidence));
  }
}

TEST_CASE("the evidence names the line that decided to send it") {
  Parent parent;
  const std::uint64_t library = parent.python("/usr/lib/python3.11/subprocess.py", "terminate", 9);
  const std::uint64_t package = parent.python("/x/site-packages/guard/loop.py", "check", 12);
  const std::uint64_t own = parent.python("/srv/app.py", "stop", 31);
  std::uint32_t node = 0;
  const char* from = " sent SIGTERM";
  SUBCASE("nothing but native code") {}
  SUBCASE("the program's own") {
    node = parent.stack({own, package, library});
    from = " sent SIGTERM from app.py:31 stop";
  }
  SUBCASE("a package's") {
    node = parent.stack({package, library});
    from = " sent SIGTERM from loop.py:12 check";
  }
  SUBCASE("the library's") {
    node = parent.stack({library});
    from = " sent SIGTERM from subprocess.py:9 terminate";
  }
  parent.sent(SIGTERM, 7, 0, node);
  CHECK(parent.evidence() == "its parent " + std::to_string(parent.header().pid) + from);
  CHECK_FALSE(parent.observed().parent_signal.for_memory);
}

TEST_CASE("Dask's nanny sends SIGTERM for memory, and SIGKILL at a shutdown as well") {
  Parent parent;
  const char* file = "/x/site-packages/distributed/process.py";
  const std::uint32_t node =
      parent.stack({parent.python(file, "AsyncProcess._watch_message_queue", 231),
                    parent.python(file, "_call_and_set_future", 42)});
  SUBCASE("SIGTERM") {
    parent.sent(SIGTERM, 7, 286 * kMB, node);
    CHECK(parent.observed().parent_signal.for_memory);
    CHECK(parent.evidence().ends_with(
        " sent SIGTERM from process.py:42 _call_and_set_future when it had 272.8 MiB resident, as "
        "Dask's nanny does when a worker exceeds its memory limit"));
    parent.sent(SIGKILL, 8, 286 * kMB, node);  // it had not obeyed
    CHECK(parent.observed(SIGKILL).parent_signal.for_memory);
  }
  SUBCASE("SIGKILL") {
    parent.sent(SIGKILL, 7, 286 * kMB, node);
    CHECK_FALSE(parent.observed(SIGKILL).parent_signal.for_memory);
    CHECK(parent.observed(SIGKILL).sender == parent.header().pid);
  }
}

TEST_CASE("a supervisor that is known to end workers for another reason") {
  Parent parent;
  const char* arbiter = "/x/site-packages/gunicorn/arbiter.py";
  const std::uint64_t script = parent.python("/x/bin/gunicorn", "<module>", 8);
  const std::uint64_t sends = parent.python(arbiter, "Arbiter.kill_worker", 700);
  SUBCASE("gunicorn, when the time is up") {
    parent.sent(
        SIGKILL, 7, 286 * kMB,
        parent.stack({script, parent.python(arbiter, "Arbiter.murder_workers", 622), sends}));
    CHECK(parent.evidence(SIGKILL).ends_with(
        " sent SIGKILL from arbiter.py:622 Arbiter.murder_workers when it had 272.8 MiB resident, "
        "as gunicorn does when a worker has not answered in time (--timeout)"));
    CHECK(parent.observed(SIGKILL).parent_signal.flags == 0);
  }
  SUBCASE("uvicorn, when the time is up") {
    const char* file = "/x/site-packages/uvicorn/supervisors/multiprocess.py";
    parent.sent(SIGKILL, 7, 286 * kMB,
                parent.stack({parent.python(file, "Multiprocess.keep_subprocess_alive", 243),
                              parent.python(file, "Process.kill", 121),
                              parent.python("/usr/lib/python3.14/subprocess.py", "kill", 9)}));
    CHECK(parent.evidence(SIGKILL).ends_with(
        " sent SIGKILL from multiprocess.py:243 Multiprocess.keep_subprocess_alive when it had "
        "272.8 MiB resident, as uvicorn does when a worker has not answered in time "
        "(--timeout-worker-healthcheck)"));
    CHECK(parent.observed(SIGKILL).parent_signal.flags == 0);
  }
  SUBCASE("gunicorn, when it stops") {
    parent.sent(SIGTERM, 7, 286 * kMB,
                parent.stack({script, parent.python(arbiter, "Arbiter.stop", 420), sends}));
    CHECK(parent.observed().parent_signal.flags == session::kSenderStops);
  }
  SUBCASE("another reason of the same program's") {
    parent.sent(SIGKILL, 7, 286 * kMB, parent.stack({script, sends}));
    CHECK(parent.evidence(SIGKILL).find(" from arbiter.py:700 Arbiter.kill_worker ") !=
          std::string::npos);
    CHECK(parent.observed(SIGKILL).parent_signal.flags == session::kSenderReasonUnknown);
  }
}

TEST_CASE("the same line ends another worker at the same size") {
  Parent parent;
  const std::uint32_t node = parent.stack({parent.python("/srv/app.py", "check", 31)});
  const auto flags = [&](bool was_growing) {
    return parent.observed(SIGKILL, was_growing).parent_signal.flags;
  };
  parent.sent(SIGKILL, 7, 286 * kMB, node);
  parent.child.last_tick_ns = parent.after(7);
  CHECK(flags(true) == session::kSenderReasonUnknown);
  SUBCASE("before it started this one, which hangs") {
    parent.sent(SIGKILL, -3, 280 * kMB, node, kChild + 1);
    parent.child.last_tick_ns = parent.after(5);
    CHECK(flags(true) == session::kSenderReasonUnknown);
  }
  SUBCASE("before it started this one") {
    parent.sent(SIGKILL, -3, 280 * kMB, node, kChild + 1);
    CHECK(flags(true) == session::kSenderPerhapsForMemory);
    CHECK(flags(false) == session::kSenderReasonUnknown);
  }
  SUBCASE("at another size") {
    parent.sent(SIGKILL, -3, 200 * kMB, node, kChild + 1);
    CHECK(flags(true) == session::kSenderReasonUnknown);
  }
  SUBCASE("at the same time") {
    parent.sent(SIGKILL, 6, 280 * kMB, node, kChild + 1);
    CHECK(flags(true) == session::kSenderReasonUnknown);
  }
  SUBCASE("from another line") {
    parent.sent(SIGKILL, -3, 280 * kMB, parent.stack({parent.python("/srv/app.py", "stop", 80)}),
                kChild + 1);
    CHECK(flags(true) == session::kSenderReasonUnknown);
  }
}

TEST_CASE("a parent that had just lost another child") {
  Parent parent;
  parent.sent(SIGTERM, 30, 300 * kMB);
  parent.waited(SIGTERM, 30);
  CHECK_FALSE(parent.has_lost_another());
  parent.lost_another(SIGKILL, 29);
  CHECK(parent.has_lost_another());
  parent.lost_another(SIGKILL, 19);  // too long before
  CHECK_FALSE(parent.has_lost_another());
  parent.lost_another(SIGKILL, 31);  // after it
  CHECK_FALSE(parent.has_lost_another());
  parent.lost_another(SIGTERM, 29);  // by the parent, too
  CHECK_FALSE(parent.has_lost_another());
  parent.lost_another(W_EXITCODE(1, 0), 29);
  CHECK_FALSE(parent.has_lost_another());
}
