// Counters of kills, and accounts of cgroups.
#include "tools/deaths/counters.h"

#include <doctest/doctest.h>

#include "common/facts/account.h"
#include "tests/unit/tools/deaths/fake_system.h"
#include "tools/deaths/cgroup_account.h"

using namespace oomrec::tools;
using namespace oomrec;
using oomrec::tests::FakeSystem;

// --- The counters of a cgroup, in both versions

TEST_CASE("version 1 counts in memory.oom_control") {
  FakeSystem system;
  system.proc("self/cgroup", "9:name=systemd:/init\n4:memory:/docker/8d2c\n0::/\n");
  const auto cgroup = system.cgroup("memory/docker/8d2c");
  system.file(cgroup / "memory.usage_in_bytes", "4096\n");
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
  system.file(cgroup / "memory.current", "4096\n");
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

// --- The account of a cgroup: its parts, and that they add up

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

struct Sum {
  std::uint64_t bytes = 0;
  void field(std::string_view, std::uint64_t part, std::string_view) { bytes += part; }
};

std::uint64_t sum_of(const session::CgroupAccount& account) {
  Sum sum;
  facts::Section<session::CgroupAccount>::describe_parts(sum, account);
  return sum.bytes;
}

deaths::ReportedProcess process(std::uint64_t pid, std::uint64_t anonymous_mib,
                                std::uint64_t shared_mib = 0) {
  deaths::ReportedProcess row;
  row.pid = row.thread = pid;
  row.name = "p" + std::to_string(pid);
  row.anonymous_bytes = anonymous_mib * kMiB;
  row.shared_bytes = shared_mib * kMiB;
  row.rss_bytes = row.anonymous_bytes + row.shared_bytes;
  return row;
}

// 100 MiB: a process with 1 + 30 of shmem, a recorded and an unrecorded neighbour.
deaths::OomReport full_cgroup() {
  deaths::OomReport report;
  report.limit_bytes = report.usage_bytes = 100 * kMiB;
  report.statistics.anonymous = 51 * kMiB;
  report.statistics.file = 40 * kMiB;
  report.statistics.shared = 30 * kMiB;
  report.statistics.slab = 2 * kMiB;
  report.statistics.stacks = 3 * kMiB;
  report.processes = {process(1, 1, 30), process(2, 10), process(3, 40)};
  return report;
}

}  // namespace

TEST_CASE("each byte is in one part") {
  const session::CgroupAccount account = deaths::account_of(full_cgroup(), 1, {1, 2});
  CHECK(account.recorded_bytes == 11 * kMiB);
  CHECK(account.unrecorded_bytes == 40 * kMiB);
  CHECK(account.shared_bytes == 30 * kMiB);
  CHECK(account.file_bytes == 10 * kMiB);
  CHECK(account.slab_bytes == 2 * kMiB);
  CHECK(account.kernel_bytes == 3 * kMiB);
  CHECK(account.other_bytes == 4 * kMiB);
  CHECK(sum_of(account) == account.usage_bytes);
  CHECK(account.own_anonymous_bytes == kMiB);
  CHECK(account.own_shared_bytes == 30 * kMiB);
  CHECK(account.largest_pid == 3);
  CHECK(account.largest_recorded == 0);
  CHECK(facts::Name{account.largest_name}.view() == "p3");
}

TEST_CASE("the process is recorded, whatever session files are left") {
  CHECK(deaths::account_of(full_cgroup(), 1, {}).recorded_bytes == kMiB);
}

TEST_CASE("a program that could not be recorded is none of the recorded processes") {
  const session::CgroupAccount account = deaths::account_of(full_cgroup(), {1, 0, false}, {2});
  CHECK(account.recorded_bytes == 10 * kMiB);
  CHECK(account.unrecorded_bytes == 41 * kMiB);
}

TEST_CASE("the recorder's helper is the process once more") {
  deaths::OomReport report = full_cgroup();
  report.processes.push_back(process(9, 45));
  report.processes.front() = process(1, 45);
  report.statistics.anonymous = 95 * kMiB;
  const session::CgroupAccount account = deaths::account_of(report, {1, 9}, {1, 2});
  CHECK(account.own_anonymous_bytes == 45 * kMiB);
  CHECK(account.largest_pid == 3);
  CHECK(account.recorded_bytes == 55 * kMiB);
  CHECK(account.unrecorded_bytes == 40 * kMiB);
}

TEST_CASE("memory shared since a fork counts once") {
  deaths::OomReport report = full_cgroup();
  report.statistics.anonymous = 25 * kMiB;
  const session::CgroupAccount account = deaths::account_of(report, 1, {1, 2});
  CHECK(account.recorded_bytes + account.unrecorded_bytes <= 25 * kMiB);
  CHECK(account.unrecorded_bytes > account.recorded_bytes);
  CHECK(sum_of(account) == account.usage_bytes);
}

TEST_CASE("statistics that lag behind do not exceed the usage") {
  deaths::OomReport report = full_cgroup();
  report.usage_bytes = 60 * kMiB;
  const session::CgroupAccount account = deaths::account_of(report, 1, {1, 2});
  CHECK(sum_of(account) == 60 * kMiB);
  CHECK(account.other_bytes == 0);
}

TEST_CASE("where the kernel logs only the sum of a process, its private part is estimated") {
  deaths::OomReport report = full_cgroup();
  for (deaths::ReportedProcess& row : report.processes)
    row.anonymous_bytes = row.file_bytes = row.shared_bytes = 0;
  const session::CgroupAccount account = deaths::account_of(report, 1, {1, 2});
  CHECK(account.own_anonymous_bytes < 31 * kMiB);
  CHECK(account.own_bytes() == 31 * kMiB);
  CHECK(sum_of(account) == account.usage_bytes);
}

TEST_CASE("without a log, the files of the cgroup and of its processes") {
  const tests::FakeSystem system;
  const auto job = system.cgroup("job");
  system.file(job / "memory.current", std::to_string(50 * kMiB) + "\n");
  system.file(job / "memory.max", std::to_string(100 * kMiB) + "\n");
  system.file(job / "memory.stat", "anon 20971520\nfile 10485760\nshmem 4194304\nkernel 1048576\n");
  system.file(job / "cgroup.procs", "7\n");
  system.file(job / "below/cgroup.procs", "8\n");
  system.proc("7/status", "Name:\tseven\nVmRSS:\t   4096 kB\nRssAnon:\t   3072 kB\n");
  system.proc("8/status", "Name:\teight\nVmRSS:\t   8192 kB\nRssAnon:\t   8192 kB\n");
  const deaths::OomReport report = deaths::report_of_cgroup(job);
  CHECK(report.usage_bytes == 50 * kMiB);
  CHECK(report.statistics.anonymous == 20 * kMiB);
  REQUIRE(report.processes.size() == 2);
  CHECK(report.processes[0].name == "seven");
  CHECK(report.processes[1].anonymous_bytes == 8 * kMiB);
  CHECK(sum_of(deaths::account_of(report, 7, {7})) == 50 * kMiB);
}
