// Which process waits for memory: its own faults together with its own cgroup, or the machine.
#include "common/limits/stalls.h"

#include <doctest/doctest.h>

#include "tests/unit/common/limits/machine.h"

using namespace oomrec;
using namespace oomrec::limit;
using oomrec::tests::Machine;

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
