// What is left of a process' state as evidence, and for how long it stood still, from fixture
// files.
#include "common/limits/health.h"

#include <doctest/doctest.h>

#include "common/limits/stalls.h"
#include "common/machine/page.h"
#include "common/system/files.h"
#include "tests/unit/common/limits/machine.h"

using namespace oomrec::limit;
using namespace oomrec;
using oomrec::tests::Machine;

// --- What is left of a process' state as evidence, from fixture files of both versions of cgroups

namespace {

const InHook kHook = OutsideHooks::in_hook();
constexpr std::uint64_t kMiB = 1 << 20;

CgroupDirectories directories_of(session::Health& health) {
  CgroupDirectories directories{};
  Ceilings seen;
  read_cgroup(kHook, seen, &directories);
  health.cgroup_limit_bytes = seen.cgroup_limit_bytes;
  return directories;
}

}  // namespace

TEST_CASE("cgroup v2: usage of the limiting ancestor, its own kills and pressure") {
  const Machine machine;
  machine.file("/proc/self/cgroup", "0::/kubepods/pod7/app\n");
  machine.file("/cgroup/kubepods/pod7/app/memory.max", "max\n");
  machine.file("/cgroup/kubepods/pod7/app/memory.current", "700\n");
  machine.file("/cgroup/kubepods/pod7/app/memory.events",
               "low 0\nhigh 2\nmax 31\noom 4\noom_kill 3\noom_group_kill 1\n");
  machine.file("/cgroup/kubepods/pod7/app/memory.pressure",
               "some avg10=12.34 avg60=1.00 avg300=0.00 total=5\n"
               "full avg10=7.05 avg60=0.50 avg300=0.00 total=3\n");
  machine.file("/cgroup/kubepods/pod7/memory.max", "1000000\n");
  machine.file("/cgroup/kubepods/pod7/memory.current", "900000\n");
  machine.file("/cgroup/kubepods/pod7/memory.stat", "anon 1\ninactive_file 100000\n");
  machine.file("/proc/self/statm", "250 77 10 1 0 60 0\n");
  machine.file("/proc/pressure/memory", "some avg10=99.00\nfull avg10=99.00\n");

  session::Health health{};
  const CgroupDirectories directories = directories_of(health);
  CHECK(std::string{directories.named} == "/kubepods/pod7/app");
  CHECK(std::string{directories.own}.ends_with("/cgroup/kubepods/pod7/app"));
  CHECK(std::string{directories.limiting}.ends_with("/cgroup/kubepods/pod7"));
  read_quick_health(kHook, directories, health);
  read_slow_health(kHook, directories, health);
  CHECK(health.cgroup_used_bytes == 800000);
  CHECK(health.cgroup_oom_kills == 3);
  machine.file("/cgroup/kubepods/pod7/app/memory.events.local", "oom 2\noom_kill 2\n");
  read_slow_health(kHook, directories, health);
  CHECK(health.cgroup_oom_kills == 2);
  CHECK(health.pressure_some == 1234);
  CHECK(health.pressure_full == 705);
  CHECK(health.vm_bytes == 250 * machine::page_bytes());
  CHECK(health.rss_bytes == 77 * machine::page_bytes());
}

TEST_CASE("cgroup v1: kills are in memory.oom_control, pressure is the machine's") {
  const Machine machine;
  machine.file("/proc/self/cgroup", "4:memory:/docker/abc\n0::/\n");
  machine.file("/cgroup/memory/docker/abc/memory.limit_in_bytes", "5000\n");
  machine.file("/cgroup/memory/docker/abc/memory.usage_in_bytes", "4000\n");
  machine.file("/cgroup/memory/docker/abc/memory.oom_control",
               "oom_kill_disable 0\nunder_oom 0\noom_kill 17\n");
  machine.file("/proc/self/stat",
               "7 (a) b) (c) S 1 7 7 0 -1 4194304 3094 55 321 9 4 2 0 0 20 0 1\n");
  machine.file("/proc/pressure/memory", "some avg10=0.50 avg60=0\nfull avg10=0.00 avg60=0\n");
  session::Health health{};
  const CgroupDirectories directories = directories_of(health);
  read_quick_health(kHook, directories, health);
  read_slow_health(kHook, directories, health);
  CHECK(health.cgroup_used_bytes == 4000);
  CHECK(health.cgroup_oom_kills == 17);
  CHECK(health.pressure_some == 50);
  CHECK(health.major_faults == 321);
  CHECK(health.pressure_full == 0);
}

TEST_CASE("without a limit usage is not read") {
  const Machine machine;
  machine.file("/proc/self/cgroup", "4:memory:/a\n");
  machine.file("/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  machine.file("/cgroup/memory/a/memory.usage_in_bytes", "4000\n");
  session::Health health{};
  read_quick_health(kHook, directories_of(health), health);
  CHECK(health.cgroup_used_bytes == 0);
}

TEST_CASE("kills on the machine are found anywhere in /proc/vmstat") {
  const Machine machine;
  for (std::size_t before = 0; before < 2300; before += 7) {
    std::string text = "nr_free_pages 1\n";
    for (unsigned i = 0; text.size() < before; ++i) text += "line" + std::to_string(i) + " 5\n";
    machine.file("/proc/vmstat", text + "oom_kill 1234567\noom_kill_other 9\nlast 1\n");
    session::Health health{};
    read_slow_health(kHook, {}, health);
    CAPTURE(before);
    REQUIRE(health.system_oom_kills == 1234567);
  }
}

TEST_CASE("what cannot be read keeps its old value") {
  const Machine machine;
  session::Health health{};
  health.cgroup_oom_kills = 5;
  health.rss_bytes = 6;
  health.pressure_full = 7;
  read_quick_health(kHook, {}, health);
  read_slow_health(kHook, {}, health);
  CHECK(health.cgroup_oom_kills == 5);
  CHECK(health.rss_bytes == 6);
  CHECK(health.pressure_full == 7);
}

TEST_CASE("live but not resident memory is a promise, not usage") {
  session::Health health{};
  health.cgroup_limit_bytes = 200 * kMiB;
  health.cgroup_used_bytes = 20 * kMiB;
  health.rss_bytes = 15 * kMiB;
  health.live_bytes = 1000 * kMiB;
  LimitUsage near = usage_of_killing_limit(health);
  CHECK(near.kind == LimitKind::cgroup);
  CHECK(near.untouched_bytes == 985 * kMiB);
  CHECK(near.percent() == 10);
  health.rss_bytes = 1020 * kMiB;
  near = usage_of_killing_limit(health);
  CHECK(near.untouched_bytes == 0);
  CHECK(near.percent() == 10);
}

TEST_CASE("a main thread that has ended: the others show memory and cgroup") {
  const Machine machine;
  const std::string own = "/proc/self/task/" + std::to_string(system::thread_id());
  machine.file("/proc/self/statm", "0 0 0 0 0 0 0\n");
  machine.file("/proc/self/cgroup", "4:memory:/\n");
  machine.file("/proc/self/status", "Name:\tx\nState:\tZ (zombie)\nThreads:\t2\n");
  machine.file(own + "/statm", "250 77 10 1 0 60 0\n");
  machine.file(own + "/cgroup", "4:memory:/job\n");
  machine.file(own + "/status", "Name:\tx\nVmSize:\t 1000 kB\nVmRSS:\t 308 kB\nVmSwap:\t 8 kB\n");
  machine.file("/cgroup/memory/job/memory.limit_in_bytes", "5000\n");
  machine.file("/cgroup/memory/job/memory.usage_in_bytes", "4000\n");
  // From outside, it is any other thread.
  machine.file("/proc/4711/statm", "0 0 0 0 0 0 0\n");
  machine.file("/proc/4711/task/4711/statm", "0 0 0 0 0 0 0\n");
  machine.file("/proc/4711/task/4712/statm", "250 78 10 1 0 60 0\n");

  session::Health health{};
  const CgroupDirectories directories = directories_of(health);
  CHECK(health.cgroup_limit_bytes == 5000);
  read_quick_health(kHook, directories, health);
  read_slow_health(kHook, directories, health);
  CHECK(health.rss_bytes == 77 * machine::page_bytes());
  CHECK(health.swap_bytes == 8 * 1024);
  CHECK(read_ceilings(kHook).rss_bytes == 308 * 1024);
  read_quick_health(kHook, directories, health, 4711);
  CHECK(health.rss_bytes == 78 * machine::page_bytes());
}

TEST_CASE("no limit is never near") {
  session::Health health{};
  health.live_bytes = health.cgroup_used_bytes = 1 << 30;
  for (const std::uint64_t none : {std::uint64_t{0}, session::kUnlimited}) {
    health.cgroup_limit_bytes = none;
    health.rlimit_as_bytes = none;
    CHECK(usage_of_killing_limit(health).percent() == 0);
    CHECK(usage_of_failing_limit(health, 0).percent() == 0);
  }
}

TEST_CASE("of two limits at which requests fail, the nearer counts") {
  session::Health health{};
  health.live_bytes = 90 * kMiB;
  health.vm_bytes = 900 * kMiB;
  health.rlimit_as_bytes = 1000 * kMiB;
  CHECK(usage_of_failing_limit(health, 100 * kMiB).kind == LimitKind::soft);
  CHECK(usage_of_failing_limit(health, 200 * kMiB).kind == LimitKind::rlimit_as);
  health.live_bytes = 0;
  CHECK(usage_of_failing_limit(health, 1).percent() == 90);
}

// --- Which process waits for memory: its own faults together with its own cgroup, or the machine

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr MachinePressure kCalm{};
constexpr MachinePressure kPressed{9000, 6000};

session::Stalls stalls(std::uint64_t faults, std::uint64_t refaults,
                       std::uint32_t cgroup_some = 0) {
  return {kSecond, faults, 0, refaults, cgroup_some, 0};
}

// By memory.high, as read on Linux 6.12.
session::Stalls throttled(std::uint32_t cgroup_full) {
  return {kSecond, 0, 0, 0, 8737, cgroup_full};
}

}  // namespace

TEST_CASE("who waits for memory") {
  const struct {
    const char* who;
    session::Stalls stalls;
    MachinePressure machine;
    bool stalled, thrashing;
  } rows[] = {
      {"nothing is known", {}, kPressed, false, false},
      {"a sleeper, while others wait", stalls(0, 0), kPressed, false, false},
      {"a sleeper, while its cgroup's others wait", stalls(3, 5000, 8000), kPressed, false, false},
      {"a reader of new files", stalls(5000, 0), kCalm, false, false},
      {"one whose cgroup evicts what it needs", stalls(60, 60), kCalm, true, false},
      {"one whose cgroup waits", stalls(60, 0, 1000), kCalm, true, false},
      {"with few faults", stalls(40, 5000), kPressed, false, false},
      {"one of those that wait on the machine", stalls(500, 0), kPressed, true, true},
      {"one whose cgroup is above memory.high", throttled(8379), kCalm, true, true},
      {"one whose cgroup is often above it", throttled(2500), kCalm, true, false},
      {"one whose cgroup is rarely above it", throttled(1500), kCalm, false, false},
      {"much, in a cgroup of a calm machine", stalls(500, 500), kCalm, true, false},
      {"much, in a cgroup that the machine notices", stalls(500, 500), {1000, 0}, true, true},
  };
  for (const auto& row : rows) {
    CAPTURE(row.who);
    CHECK(is_stalled(row.stalls, row.machine) == row.stalled);
    CHECK(is_thrashing(row.stalls, row.machine) == row.thrashing);
  }
}

TEST_CASE("on a slow disk few faults take most of the time") {
  session::Stalls slow = stalls(15, 60);
  CHECK_FALSE(is_stalled(slow, kCalm));
  slow.blocked_ns = kSecond / 2;
  CHECK(is_stalled(slow, kCalm));
}

TEST_CASE("rates are per second of the window") {
  session::Stalls longer = stalls(600, 600);
  longer.window_ns = 20 * kSecond;
  CHECK(faults_per_second(longer) == 30);
  CHECK_FALSE(is_stalled(longer, kCalm));
}

TEST_CASE("counters of a process and its cgroup") {
  const InHook hook = OutsideHooks::in_hook();
  Machine machine;
  CgroupDirectories cgroup{};
  std::string{system::g_roots.cgroup}.append("/job").copy(cgroup.own, sizeof cgroup.own - 1);
  machine.file("/proc/7/stat",
               "7 (a) b) (c) S 1 7 7 0 -1 4194304 3094 55 321 9 4 2 0 0 20 0 1 0 100 1 1 1 1 1 1 1 "
               "1 1 1 1 1 1 1 1 17 1 0 0 250 0 0\n");
  machine.file("/cgroup/job/memory.stat",
               "anon 1\nworkingset_refault_anon 20\nworkingset_refault_file 300\n");
  machine.file("/cgroup/job/memory.pressure",
               "some avg10=12.34 avg60=0\nfull avg10=5.00 avg60=0\n");
  const StallCounters before = read_stall_counters(hook, cgroup, 7);
  CHECK(before.major_faults == 321);
  CHECK(before.blocked_ns == 2'500'000'000);
  CHECK(before.cgroup_refaults == 320);
  CHECK(before.cgroup_some == 1234);
  StallCounters now = before;
  now.time_ns += kSecond;
  now.major_faults += 70;
  now.cgroup_refaults -= 100;  // another cgroup
  const session::Stalls grown = stalls_between(before, now);
  CHECK(grown.window_ns == kSecond);
  CHECK(grown.major_faults == 70);
  CHECK(grown.cgroup_refaults == 0);
  CHECK(grown.cgroup_full == 500);
  CHECK(stalls_between({}, now).window_ns == 0);
}
