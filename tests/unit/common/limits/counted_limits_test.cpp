// Limits on tasks, mappings and committed memory, read from the files of another machine.
#include "common/limits/counted_limits.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/machine/page.h"
#include "common/system/files.h"
#include "tests/unit/scratch_directory.h"

using namespace oomrec;
using session::CountedLimits;
using session::kUnlimited;

namespace {

const InHook kHook = OutsideHooks::in_hook();

class Machine {
 public:
  Machine() {
    std::strcpy(system::g_roots.proc, (root_ + "/proc").c_str());
    std::strcpy(system::g_roots.cgroup, (root_ + "/cgroup").c_str());
  }
  ~Machine() { system::g_roots = {}; }
  void file(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  static CountedLimits tasks() {
    CountedLimits limits{};
    limit::read_task_limits(kHook, limits);
    return limits;
  }
  static CountedLimits mappings() {
    CountedLimits limits{};
    limit::read_mapping_limits(kHook, limits);
    return limits;
  }

 private:
  tests::ScratchDirectory directory_;
  const std::string root_ = directory_.path();
};

std::string status(int uid, const char* capabilities) {
  return "Name:\tx\nUid:\t" + std::to_string(uid) + "\t0\t0\t0\nThreads:\t7\nCapEff:\t" +
         capabilities + "\n";
}

}  // namespace

TEST_CASE("tasks of the cgroup with the fewest left, v1") {
  const Machine machine;
  machine.file("/proc/self/cgroup", "8:pids:/a/b\n4:memory:/other\n0::/\n");
  machine.file("/cgroup/pids/a/b/pids.current", "3\n");
  machine.file("/cgroup/pids/a/b/pids.max", "max\n");
  machine.file("/cgroup/pids/a/pids.current", "19\n");
  machine.file("/cgroup/pids/a/pids.max", "20\n");
  const CountedLimits seen = Machine::tasks();
  CHECK(seen.cgroup_tasks == 19);
  CHECK(seen.cgroup_tasks_limit == 20);
}

TEST_CASE("tasks of the cgroup, v2, in a container whose path is invisible") {
  const Machine machine;
  machine.file("/proc/self/cgroup", "0::/docker/abc\n");
  machine.file("/cgroup/pids.current", "50\n");
  machine.file("/cgroup/pids.max", "50\n");
  const CountedLimits seen = Machine::tasks();
  CHECK(seen.cgroup_tasks == 50);
  CHECK(seen.cgroup_tasks_limit == 50);
}

TEST_CASE("the machine's tasks and their limit") {
  const Machine machine;
  machine.file("/proc/loadavg", "0.10 0.20 0.30 2/345 6789\n");
  machine.file("/proc/sys/kernel/threads-max", "1000\n");
  machine.file("/proc/sys/kernel/pid_max", "32768\n");
  const CountedLimits seen = Machine::tasks();
  CHECK(seen.machine_tasks == 345);
  CHECK(seen.threads_max == 1000);
  CHECK(seen.pid_max == 32468);
}

TEST_CASE("RLIMIT_NPROC applies to users, and to root in another user namespace") {
  struct Row {
    int uid;
    const char* capabilities;
    const char* uid_map;
    bool binds;
  };
  const Row rows[] = {
      {1000, "0000000000000000", "0 0 4294967295\n", true},
      {0, "0000000000000000", "0 0 4294967295\n", false},
      {1000, "0000000001000000", "0 0 4294967295\n", false},  // CAP_SYS_RESOURCE
      {1000, "0000000000200000", "0 0 4294967295\n", false},  // CAP_SYS_ADMIN
      {1000, "0000000000000001", "0 0 4294967295\n", true},
      {0, "000001ffffffffff", "0 1000 1\n", true},
  };
  const rlimit before = [] {
    rlimit limits{};
    getrlimit(RLIMIT_NPROC, &limits);
    return limits;
  }();
  const rlimit some{before.rlim_max < 4321 ? before.rlim_max : 4321, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NPROC, &some) == 0);
  for (const Row& row : rows) {
    const Machine machine;
    machine.file("/proc/self/status", status(row.uid, row.capabilities));
    machine.file("/proc/self/uid_map", row.uid_map);
    const CountedLimits seen = Machine::tasks();
    CAPTURE(row.uid);
    CAPTURE(row.capabilities);
    CHECK(seen.own_tasks == 7);
    CHECK(seen.own_tasks_limit == (row.binds ? some.rlim_cur : kUnlimited));
  }
  setrlimit(RLIMIT_NPROC, &before);
}

TEST_CASE("mappings are counted, however long the list") {
  const Machine machine;
  std::string maps;
  for (int i = 0; i < 3001; ++i) maps += "7f0000000000-7f0000001000 rw-p 00000000 00:00 0\n";
  machine.file("/proc/self/maps", maps);
  machine.file("/proc/sys/vm/max_map_count", "3000\n");
  const CountedLimits seen = Machine::mappings();
  CHECK(seen.mappings == 3001);
  CHECK(seen.max_mappings == 3000);
}

TEST_CASE("committed memory is limited only by strict accounting") {
  const Machine machine;
  machine.file("/proc/meminfo", "MemTotal: 9 kB\nCommitLimit:  500 kB\nCommitted_AS:  400 kB\n");
  machine.file("/proc/sys/vm/overcommit_memory", "2\n");
  CHECK(Machine::mappings().commit_limit_bytes == 500 * 1024);
  CHECK(Machine::mappings().committed_bytes == 400 * 1024);
  // A process keeps a part of the limit free, and all but the administrator's another one.
  const std::uint64_t pages = 12'800 * 1024 / machine::page_bytes();
  machine.file("/proc/self/statm", std::to_string(pages) + " 50 30 1 0 60 0\n");
  machine.file("/proc/sys/vm/user_reserve_kbytes", "62165\n");
  machine.file("/proc/sys/vm/admin_reserve_kbytes", "70\n");
  machine.file("/proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\n");
  CHECK(Machine::mappings().commit_limit_bytes == 30 * 1024);
  machine.file("/proc/sys/vm/user_reserve_kbytes", "100\n");
  CHECK(Machine::mappings().commit_limit_bytes == 330 * 1024);
  for (const char* mode : {"0\n", "1\n"}) {
    machine.file("/proc/sys/vm/overcommit_memory", mode);
    CHECK(Machine::mappings().commit_limit_bytes == kUnlimited);
  }
}

TEST_CASE("without /proc nothing is known") {
  const Machine machine;
  const CountedLimits tasks = Machine::tasks();
  CHECK(tasks.own_tasks + tasks.cgroup_tasks + tasks.machine_tasks == 0);
  CHECK(Machine::mappings().mappings == 0);
}

TEST_CASE("this machine's own limits can be read") {
  CountedLimits seen = Machine::tasks();
  CHECK(seen.own_tasks == 1);
  CHECK(seen.machine_tasks > 1);
  CHECK(seen.threads_max > seen.machine_tasks);
  seen = Machine::mappings();
  CHECK(seen.mappings > 10);
  CHECK(seen.max_mappings > seen.mappings);
}
