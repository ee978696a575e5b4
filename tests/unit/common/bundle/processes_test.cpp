// Other processes in a bundle, and the group of those that belong together.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "common/bundle/bundle.h"
#include "common/bundle/process_group.h"
#include "common/bundle/session_summary.h"
#include "common/machine/page.h"
#include "tests/unit/common/bundle/scratch.h"
#include "tests/unit/common/bundle/session_image.h"
#include "tests/unit/tools/deaths/fake_system.h"

using namespace oomrec::bundle;
using namespace oomrec;
using json = tools::Json;
using session::SessionImage;
using session::TrainingSession;

namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::int32_t kParent = 4711;  // TrainingSession's
constexpr std::uint64_t kParentStart = 123456;

// The boot of SessionImage, under which the machine of the test runs.
constexpr const char* kBoot = "abababab-abab-abab-abab-abababababab\n";

struct Recorded : SessionImage {
  Recorded(std::int32_t pid, std::int32_t parent, std::uint64_t live_bytes,
           std::uint64_t start = kParentStart + 10) {
    header().pid = pid;
    header().parent_pid = parent;
    header().start_ticks = start;
    // Each part belongs to another thread: their sum counts.
    for (int part = 0; part < 2; ++part)
      lane(0, 2).spaces[0].usable_allocated_bytes = live_bytes / 2;
    header().health.rss_bytes = live_bytes + kMiB;
    header().spaces[0].peak_bytes = 2 * live_bytes;
  }
};

class Machine : public tests::FakeSystem {
 public:
  Machine() : sessions_(fs::path{path()} / "sessions") {
    fs::create_directories(sessions_);
    proc("sys/kernel/random/boot_id", kBoot);
  }

  // A visible process.
  void runs(std::int32_t pid, std::uint64_t start, std::uint64_t rss_bytes,
            const std::string& name = "worker") {
    const std::string directory = std::to_string(pid);
    std::string stat = directory + " (" + name + ") S";
    for (int field = 4; field < 22; ++field) stat += " 0";
    proc(directory + "/stat", stat + " " + std::to_string(start) + " 0\n");
    proc(directory + "/statm",
         "999999 " + std::to_string(rss_bytes / machine::page_bytes()) + " 0 0 0 0 0\n");
    proc(directory + "/comm", name + "\n");
  }
  void has(SessionImage& image) {
    const std::string name = "node7-" + std::to_string(image.header().pid) + "-" +
                             std::to_string(++files_) + "-00000001.session";
    std::ofstream{sessions_ / name, std::ios::binary}.write(
        reinterpret_cast<const char*>(image.bytes().data()),
        static_cast<std::streamsize>(image.header().used_bytes));
  }
  json of(const session::View& view, Cause cause) {
    cause.session_directory = sessions_.c_str();
    const fs::path bundle = scratch.write(view, cause);
    last = bundle.filename();
    return Scratch::json(bundle / "processes.json");
  }
  json of_training() { return of(training.view(), cause()); }

  Cause cause() const {
    Cause cause;
    cause.trigger = Trigger::soft_limit;
    cause.failure = training.failure;
    return cause;
  }
  const fs::path& sessions() const { return sessions_; }

  TrainingSession training;
  Scratch scratch;
  std::string last;  // bundle

 private:
  fs::path sessions_;
  int files_ = 0;
};

// "4712 child running"
std::string text_of(const json& rows) {
  std::string text;
  for (const json& row : rows) {
    if (!text.empty()) text += ", ";
    text += std::to_string(row["pid"].get<int>()) + ' ' + row["relation"].get<std::string>() + ' ' +
            row["outcome"].get<std::string>();
  }
  return text;
}

}  // namespace

TEST_CASE("a single process is alone in its list") {
  Machine machine;
  const json all = machine.of_training();
  REQUIRE(all["processes"].size() == 1);
  const json& self = all["processes"][0];
  CHECK(self["pid"] == kParent);
  CHECK(self["ppid"] == 4710);
  CHECK(self["program"] == "python3.11");
  CHECK(self["relation"] == "self");
  CHECK(self["live_bytes"] == 640 * kMiB);
  CHECK(self["peak_bytes"] == 640 * kMiB);
  CHECK(self["rss_bytes"].is_null());
  CHECK(self["outcome"] == "running");
  CHECK(self["bundle"] == machine.last);
  CHECK(self["process"] == "abababababababababababababababab-4711-123456");
  CHECK(all["others"].empty());
  CHECK(all["cgroup"].is_null());
  CHECK(all["left_out"] == 0);
}

TEST_CASE("a group is listed from its recordings, each process once") {
  Machine machine;
  Recorded worker{4712, kParent, 24 * kMiB}, shell{4710, 1, 2 * kMiB, 100},
      stranger{5000, 4999, kMiB}, helper{4713, 4712, kMiB, kParentStart + 20};
  Recorded before_exec{4712, kParent, 7 * kMiB};
  before_exec.header().start_realtime_ns -= 1;
  before_exec.header().state = static_cast<std::uint32_t>(session::State::replaced);
  for (SessionImage* const image :
       {static_cast<SessionImage*>(&machine.training), static_cast<SessionImage*>(&worker),
        static_cast<SessionImage*>(&before_exec), static_cast<SessionImage*>(&shell),
        static_cast<SessionImage*>(&stranger), static_cast<SessionImage*>(&helper)})
    machine.has(*image);
  machine.runs(4710, 100, 5 * kMiB);
  machine.runs(4711, kParentStart, 700 * kMiB);
  machine.runs(4712, worker.header().start_ticks, 30 * kMiB);

  const json rows = machine.of_training()["processes"];
  CHECK(text_of(rows) ==
        "4711 self running, 4710 parent running, 4712 child running, 4713 descendant unknown");
  CHECK(rows[0]["rss_bytes"] == 700 * kMiB);
  CHECK(rows[2]["ppid"] == kParent);
  CHECK(rows[2]["program"] == "python3.11");
  CHECK(rows[2]["live_bytes"] == 24 * kMiB);
  CHECK(rows[2]["peak_bytes"] == 48 * kMiB);
  CHECK(rows[2]["rss_bytes"] == 30 * kMiB);
  CHECK(rows[2]["bundle"].is_null());
  CHECK(rows[3]["rss_bytes"] == 2 * kMiB);  // not visible: its own last reading

  // The worker's own list has the same processes.
  Cause cause;
  cause.trigger = Trigger::request;
  CHECK(text_of(machine.of(worker.view(), cause)["processes"]) ==
        "4712 self running, 4711 parent running, 4710 ancestor running, 4713 child unknown");
}

TEST_CASE(
    "a dead member's outcome comes from its recording, or from the process that waited for it") {
  Machine machine;
  Recorded exited{4721, kParent, kMiB}, crashed{4722, kParent, kMiB}, killed{4723, kParent, kMiB},
      unseen{4724, kParent, kMiB};
  exited.header().state = static_cast<std::uint32_t>(session::State::exited);
  exited.header().exit_status = 3;
  crashed.header().crash.signal = 11;
  for (SessionImage* const image : {&exited, &crashed, &killed, &unseen}) machine.has(*image);
  session::EndedChild& ended = machine.training.header().ended[2];
  ended.pid = 4723;
  ended.wait_status = 9;
  ended.time_ns = machine.training.header().start_monotonic_ns + 1;

  CHECK(text_of(machine.of_training()["processes"]) ==
        "4711 self running, 4721 child exited 3, 4722 child signal 11, 4723 child signal 9, "
        "4724 child unknown");
}

TEST_CASE("a dead process is listed from its latest bundle") {
  Machine machine;
  Recorded worker{4712, kParent, 24 * kMiB};
  Cause killed;
  killed.trigger = Trigger::killed;
  killed.alive = false;
  killed.realtime_ns = 1795256102'000'000'000U;
  killed.outcome = OutcomeKind::running;
  machine.of(worker.view(), killed);
  killed.realtime_ns += 3'000'000'000U;
  killed.outcome = OutcomeKind::signal;
  killed.outcome_value = 9;
  machine.of(worker.view(), killed);
  const std::string bundle = machine.last;

  json rows = machine.of_training()["processes"];
  CHECK(text_of(rows) == "4711 self running, 4712 child signal 9");
  CHECK(rows[1]["bundle"] == bundle);
  CHECK(rows[1]["live_bytes"] == 24 * kMiB);

  // An existing recording takes precedence; the bundle's name stays.
  worker.header().exit_status = 7;
  worker.header().state = static_cast<std::uint32_t>(session::State::exited);
  machine.has(worker);
  rows = machine.of_training()["processes"];
  CHECK(text_of(rows) == "4711 self running, 4712 child exited 7");
  CHECK(rows[1]["bundle"] == bundle);
}

TEST_CASE("lookalikes are not members") {
  Machine machine;
  Recorded other_boot{4731, kParent, kMiB}, other_host{4732, kParent, kMiB},
      other_namespace{4733, kParent, kMiB}, earlier{4734, kParent, kMiB, kParentStart - 1};
  other_boot.header().boot_id[3] = 1;
  std::strcpy(other_host.header().host, "node8");
  other_namespace.header().pid_namespace = 4026531836;
  for (SessionImage* const image : {&other_boot, &other_host, &other_namespace, &earlier})
    machine.has(*image);
  CHECK(text_of(machine.of_training()["processes"]) == "4711 self running");
}

TEST_CASE("hostile, torn and foreign files are skipped") {
  Machine machine;
  Recorded worker{4712, kParent, 24 * kMiB};
  machine.has(worker);
  const auto whole = Scratch::text(fs::directory_iterator { machine.sessions() } -> path());
  const auto put = [&](const std::string& name, const std::string& bytes) {
    std::ofstream{machine.sessions() / (name + ".session"), std::ios::binary} << bytes;
  };
  put("empty", "");
  put("cut", whole.substr(0, 4000));
  put("text", std::string(session::kHeaderBytes, 'x'));
  fs::create_directory(machine.sessions() / "directory.session");
  REQUIRE(mkfifo((machine.sessions() / "pipe.session").c_str(), 0600) == 0);
  fs::create_symlink("/dev/zero", machine.sessions() / "link.session");
  CHECK(text_of(machine.of_training()["processes"]) == "4711 self running, 4712 child unknown");
}

TEST_CASE("a forged recording has other figures, or none") {
  Machine machine;
  Recorded worker{4712, kParent, 24 * kMiB};
  machine.has(worker);
  const std::string path = fs::directory_iterator { machine.sessions() } -> path();
  const std::string whole = Scratch::text(path);
  alignas(8) static char buffer[session::kHeaderBytes];
  std::minstd_rand random{11};
  unsigned named = 0, held = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string forged = whole;
    const auto forge = [&](std::size_t at) {
      const std::uint64_t value = random() % 3 == 0 ? ~std::uint64_t{0} : std::uint64_t{random()};
      std::memcpy(forged.data() + at, &value, sizeof value);
    };
    for (int word = 0; word < 20; ++word)
      forge(200 + 8 * (random() % ((session::kHeaderBytes - 208) / 8)));
    if (round % 2 == 0) forge(offsetof(session::Header, tables) + 8 * (random() % 3));
    std::ofstream{path, std::ios::binary} << forged;
    const SessionSummary recording{AT_FDCWD, path.c_str(), buffer};
    if (!recording.is_session()) continue;
    char name[64];
    named += recording.base_name(recording.header().executable, name) == "python3.11" ? 1 : 0;
    held += recording.live_bytes(Space::heap) == 24 * kMiB ? 1 : 0;
  }
  CHECK(named > 500);
  CHECK(named < 2000);
  CHECK(held > 500);
}

TEST_CASE("a huge directory is read up to a limit, which is reported") {
  Machine machine;
  Recorded worker{4712, kParent, kMiB};
  for (std::int32_t pid = 5000; pid < 5400; ++pid) {
    worker.header().pid = pid;
    machine.has(worker);
  }
  const json all = machine.of_training();
  CHECK(all["processes"].size() == 256);
  CHECK(all["left_out"] == 400 - 256 + 1);  // the process itself is the 256th
}

TEST_CASE("others are the largest processes of the cgroup outside the group") {
  Machine machine;
  const fs::path cgroup = machine.cgroup("memory/job");
  machine.training.header().cgroup = machine.training.string(cgroup.string());
  Recorded worker{4712, kParent, kMiB}, stranger{5003, 4999, kMiB, 777};
  machine.has(worker);
  machine.has(stranger);
  std::string pids;
  for (std::int32_t pid : {4711, 4712}) {
    machine.runs(pid, pid == kParent ? kParentStart : worker.header().start_ticks, 900 * kMiB);
    pids += std::to_string(pid) + "\n";
  }
  for (int i = 0; i < 20; ++i) {
    machine.runs(5000 + i, 777, static_cast<std::uint64_t>((7 * i) % 20 + 1) * kMiB, "other");
    pids += std::to_string(5000 + i) + "\n";
  }
  pids += "6000\n";  // ended meanwhile
  machine.file(cgroup / "cgroup.procs", pids);

  const json all = machine.of_training();
  CHECK(all["cgroup"] == cgroup.string());
  REQUIRE(all["others"].size() == 10);
  for (std::uint64_t i = 0; i < 10; ++i) {
    const json& row = all["others"][i];
    CHECK(row["rss_bytes"] == (20 - i) * kMiB);
    CHECK(row["program"] == "other");
    CHECK(row["recorded"] == (row["pid"] == 5003));
  }
}

namespace {

RecordedProcess recorded(std::int32_t pid, std::int32_t parent, std::uint64_t start) {
  RecordedProcess made{};
  made.pid = pid;
  made.parent_pid = parent;
  made.start_ticks = start;
  return made;
}

// "11 parent, 12 child", by pid; without processes outside the group.
std::string relations(std::vector<RecordedProcess> all) {
  set_relations(all);
  std::sort(all.begin(), all.end(), [](const RecordedProcess& a, const RecordedProcess& b) {
    return a.pid != b.pid ? a.pid < b.pid : a.start_ticks < b.start_ticks;
  });
  std::string text;
  for (const RecordedProcess& one : all) {
    if (one.relation == Relation::none) continue;
    if (!text.empty()) text += ", ";
    text += std::to_string(one.pid) + ' ' + std::string{name_of(one.relation)};
  }
  return text;
}

}  // namespace

TEST_CASE("a group is all descendants of a common ancestor") {
  const std::vector<RecordedProcess> all = {
      recorded(50, 40, 5), recorded(10, 1, 1),  recorded(20, 10, 2), recorded(40, 20, 4),
      recorded(60, 50, 6), recorded(70, 60, 7), recorded(80, 70, 8), recorded(41, 20, 5),
      recorded(42, 41, 6), recorded(99, 98, 3), recorded(97, 99, 4),
  };
  const std::string expected =
      "10 ancestor, 20 ancestor, 40 parent, 41 relative, 42 relative, 50 self, 60 child, "
      "70 descendant, 80 descendant";
  CHECK(relations(all) == expected);

  // The order of the directory does not matter.
  std::minstd_rand random{7};
  std::vector<RecordedProcess> shuffled = all;
  for (int round = 0; round < 20; ++round) {
    std::shuffle(shuffled.begin() + 1, shuffled.end(), random);
    CHECK(relations(shuffled) == expected);
  }
}

TEST_CASE("if a pid was reused, the parent is the last one started before the child") {
  const RecordedProcess child = recorded(50, 40, 50);
  const RecordedProcess before = recorded(40, 1, 10), parent = recorded(40, 2, 20),
                        after = recorded(40, 3, 60);
  const std::vector<RecordedProcess> roots = {recorded(1, 0, 1), recorded(2, 0, 2),
                                              recorded(3, 0, 3)};
  std::vector<RecordedProcess> all = {child, after, before, parent};
  all.insert(all.end(), roots.begin(), roots.end());
  CHECK(relations(all) == "2 ancestor, 40 parent, 50 self");
}

TEST_CASE("a single process, and pids that form a cycle") {
  CHECK(relations({recorded(50, 40, 5)}) == "50 self");
  CHECK(relations({recorded(50, 50, 5)}) == "50 self");
  CHECK(relations({recorded(50, 40, 5), recorded(40, 50, 5)}) == "40 parent, 50 self");
  CHECK(relations({recorded(50, 1, 5), recorded(40, 41, 5), recorded(41, 40, 5)}) == "50 self");
}
