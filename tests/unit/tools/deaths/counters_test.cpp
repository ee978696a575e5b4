// The counters of a cgroup, in both versions.
#include "tools/deaths/counters.h"

#include <doctest/doctest.h>

#include "tests/unit/tools/deaths/fake_system.h"

using namespace oomrec::tools;
using oomrec::tests::FakeSystem;

TEST_CASE("version 1 counts in memory.oom_control") {
  FakeSystem system;
  system.proc("self/cgroup", "9:name=systemd:/init\n4:memory:/docker/8d2c\n0::/\n");
  const auto cgroup = system.cgroup("memory/docker/8d2c");
  system.file(cgroup / "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
  CHECK(deaths::own_cgroup().directory == cgroup);
  CHECK(deaths::own_cgroup().path == "/docker/8d2c");
  CHECK(deaths::oom_kills_in(cgroup) == 3);
  CHECK(deaths::oom_kills_below(cgroup) == 3);
}

TEST_CASE("version 1 of a kernel before 4.13 does not count") {
  FakeSystem system;
  const auto cgroup = system.cgroup("memory/x");
  system.file(cgroup / "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n");
  CHECK_FALSE(deaths::oom_kills_in(cgroup).has_value());
}

TEST_CASE("version 2 counts in memory.events, and without descendants in memory.events.local") {
  FakeSystem system;
  system.proc("self/cgroup", "0::/system.slice/job.service\n");
  const auto cgroup = system.cgroup("system.slice/job.service");
  system.file(cgroup / "memory.events", "low 0\nhigh 0\nmax 7\noom 5\noom_kill 5\n");
  CHECK(deaths::own_cgroup().directory == cgroup);
  CHECK(deaths::oom_kills_in(cgroup) == 5);
  system.file(cgroup / "memory.events.local", "oom 2\noom_kill 2\noom_group_kill 0\n");
  CHECK(deaths::oom_kills_in(cgroup) == 2);
  CHECK(deaths::oom_kills_below(cgroup) == 5);
}

TEST_CASE("if the cgroup's path is not visible, the mounted root is used") {
  FakeSystem system;
  system.proc("self/cgroup", "0::/../../elsewhere\n");
  const auto root = system.cgroup("");
  CHECK(deaths::own_cgroup().directory == root);
  CHECK_FALSE(deaths::oom_kills_in(root).has_value());
}

TEST_CASE("the processes of a cgroup are sorted") {
  FakeSystem system;
  const auto cgroup = system.cgroup("x");
  CHECK_FALSE(deaths::processes_in(cgroup).has_value());
  system.file(cgroup / "cgroup.procs", "12\n7\n300\n");
  CHECK(deaths::processes_in(cgroup) == std::vector<pid_t>{7, 12, 300});
  system.file(cgroup / "cgroup.procs", "");
  CHECK(deaths::processes_in(cgroup) == std::vector<pid_t>{});
  std::string many;
  for (int pid = 10000; many.size() < 70'000; ++pid) many += std::to_string(pid) + "\n";
  system.file(cgroup / "cgroup.procs", many);
  CHECK_FALSE(deaths::processes_in(cgroup).has_value());
}

TEST_CASE("OOM kills and pressure of the machine") {
  FakeSystem system;
  CHECK_FALSE(deaths::system_oom_kills().has_value());
  CHECK(deaths::pressure_of("").full == 0);
  system.proc("vmstat", "nr_free_pages 8\noom_kill 4\n");
  system.proc("pressure/memory",
              "some avg10=12.34 avg60=0.00 avg300=0.00 total=1\n"
              "full avg10=100.00 avg60=0.00 avg300=0.00 total=1\n");
  CHECK(deaths::system_oom_kills() == 4);
  CHECK(deaths::pressure_of("").some == 1234);
  CHECK(deaths::pressure_of("").full == 10'000);
  const auto cgroup = system.cgroup("x");
  CHECK(deaths::pressure_of(cgroup).some == 1234);
  system.file(cgroup / "memory.pressure", "some avg10=0.05 avg60=0.00\nfull avg10=0.00 avg60=1\n");
  CHECK(deaths::pressure_of(cgroup).some == 5);
}
