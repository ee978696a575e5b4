// Limits on memory, and on what is counted: the soft limit with its reserve, ceilings, tasks,
// mappings and committed memory, from the files of another machine.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <string>

#include "common/limits/ceilings.h"
#include "common/limits/cgroup.h"
#include "common/limits/counted_limits.h"
#include "common/machine/page.h"
#include "common/session/layout.h"
#include "recorder/live/soft_limit.h"
#include "tests/unit/common/limits/machine.h"

using namespace oomrec::limit;
using namespace oomrec;
using session::CountedLimits;
using session::kUnlimited;
using tests::Machine;

// --- Limits on memory: the soft limit with its reserve, and ceilings from fixture files

namespace {

const InHook kHook = OutsideHooks::in_hook();
constexpr std::int64_t kMiB = 1 << 20;

}  // namespace

TEST_CASE("without a limit everything is admitted") {
  live::SoftLimit limit;
  CHECK(limit.admits(kMiB << 20, ~std::uint64_t{0}));
}

TEST_CASE("a request beyond the limit fails") {
  live::SoftLimit limit;
  limit.set(100 * kMiB, 8 * kMiB);
  CHECK(limit.admits(60 * kMiB, 40 * kMiB));
  CHECK_FALSE(limit.admits(60 * kMiB, 40 * kMiB + 1));
  CHECK_FALSE(limit.admits(60 * kMiB, ~std::uint64_t{0}));  // the sum overflows
  CHECK(limit.admits(-5, 100 * kMiB));
}

TEST_CASE("after the first failure a reserve is open to small requests and arenas only") {
  live::SoftLimit limit;
  limit.set(100 * kMiB, 8 * kMiB);
  CHECK_FALSE(limit.admits(100 * kMiB, 5000));  // the first
  CHECK(limit.admits(100 * kMiB, 5000));
  CHECK(limit.admits(108 * kMiB - 1000, 1000));
  CHECK_FALSE(limit.admits(108 * kMiB - 1000, 1001));
  CHECK_FALSE(limit.admits(100 * kMiB, 256 * 1024));
  CHECK(limit.admits(100 * kMiB, kMiB, true));  // an arena of Python's small objects
  CHECK_FALSE(limit.admits(100 * kMiB, kMiB + 1, true));
  CHECK_FALSE(limit.admits(108 * kMiB, 4096, true));
  limit.close_reserve();
  CHECK_FALSE(limit.admits(100 * kMiB, 5000));
}

TEST_CASE("a quarter of the reserve is always open to tiny blocks") {
  live::SoftLimit limit;
  limit.set(100 * kMiB, 8 * kMiB);
  CHECK(limit.admits(102 * kMiB - 32, 32));
  CHECK_FALSE(limit.admits(100 * kMiB, 4096, true));  // not to mappings
  limit.close_reserve();
  CHECK_FALSE(limit.admits(102 * kMiB - 32, 33));
  CHECK(limit.admits(102 * kMiB, 32));  // now all of it is open
}

TEST_CASE("the reserve is a hundredth of the limit, within bounds, or as it was chosen") {
  using live::SoftLimit;
  CHECK(SoftLimit::default_reserve(100 * kMiB) == 8 * kMiB);
  CHECK(SoftLimit::default_reserve(9 * kMiB) == 3 * kMiB);
  CHECK(SoftLimit::default_reserve(1000 * kMiB) == 10 * kMiB);
  CHECK(SoftLimit::default_reserve(kMiB << 20) == 64 * kMiB);
  SoftLimit none;
  none.set(100 * kMiB, 0);
  CHECK_FALSE(none.admits(100 * kMiB, 1));
  CHECK_FALSE(none.admits(100 * kMiB, 1));
}

TEST_CASE("a refused mapping opens a quarter of the reserve, to blocks of the heap") {
  live::SoftLimit limit;
  limit.set(100 * kMiB, 8 * kMiB);
  CHECK_FALSE(limit.admits(100 * kMiB, kMiB, true));
  CHECK_FALSE(limit.admits(100 * kMiB, kMiB, true));   // the allocator tries again
  CHECK(limit.admits(102 * kMiB - 1000, 1000));        // … and does without
  CHECK_FALSE(limit.admits(102 * kMiB - 1000, 1001));  // now the program's own request is refused
  CHECK(limit.admits(107 * kMiB, kMiB, true));
  CHECK(limit.admits(108 * kMiB - 1000, 1000));
}

TEST_CASE("a default reserve grows if its use did not end the program") {
  live::SoftLimit limit;
  limit.set(100 * kMiB, 8 * kMiB, true);
  CHECK_FALSE(limit.admits(100 * kMiB, 5000));
  CHECK_FALSE(limit.admits(107 * kMiB, kMiB));
  CHECK(limit.reserve_bytes() == 8 * kMiB);  // no Python

  limit.set(100 * kMiB, 8 * kMiB, true);
  limit.let_grow();
  CHECK_FALSE(limit.admits(100 * kMiB, 5000));
  CHECK_FALSE(limit.admits(103 * kMiB, kMiB));            // too large, and less than half is used
  CHECK_FALSE(limit.admits(107 * kMiB, kMiB + 1, true));  // mappings can be done without
  CHECK(limit.reserve_bytes() == 8 * kMiB);
  CHECK_FALSE(limit.admits(105 * kMiB, kMiB));  // the program has gone on
  CHECK(limit.reserve_bytes() == 16 * kMiB);
  CHECK(limit.admits(116 * kMiB - 1000, 1000));
  CHECK_FALSE(limit.admits(116 * kMiB, 1000));
  CHECK(limit.admits(116 * kMiB, 1000));
  CHECK_FALSE(limit.admits(124 * kMiB, 1000));
  CHECK_FALSE(limit.admits(124 * kMiB, 1000));
  CHECK(limit.reserve_bytes() == 24 * kMiB);
  limit.observe(100 * kMiB - 8 * kMiB - 1);
  CHECK(limit.reserve_bytes() == 8 * kMiB);

  limit.set(100 * kMiB, 8 * kMiB);  // as it was chosen
  CHECK_FALSE(limit.admits(100 * kMiB, 5000));
  CHECK_FALSE(limit.admits(108 * kMiB, 5000));
  CHECK_FALSE(limit.admits(108 * kMiB, 5000));
}

TEST_CASE("the reserve closes when the program is below the limit again") {
  live::SoftLimit limit;
  limit.set(100 * kMiB, 4 * kMiB);
  CHECK_FALSE(limit.admits(100 * kMiB, 5000));
  limit.observe(98 * kMiB);  // a little was freed: the error is still being handled
  CHECK(limit.admits(100 * kMiB, 5000));
  limit.observe(103 * kMiB);
  CHECK(limit.admits(103 * kMiB, 5000));
  limit.observe(96 * kMiB - 1);
  CHECK_FALSE(limit.admits(100 * kMiB, 5000));  // refused again, and opened again
  CHECK(limit.admits(100 * kMiB, 5000));
}

TEST_CASE("the reserve closes when the program has gone on after a refusal far below the limit") {
  live::SoftLimit limit;
  limit.set(100 * kMiB, 4 * kMiB);
  CHECK_FALSE(limit.admits(50 * kMiB, 60 * kMiB));
  limit.observe(50 * kMiB);
  limit.observe(58 * kMiB);
  CHECK(limit.admits(100 * kMiB, 5000));  // as far as is known the error is still being handled
  limit.observe(58 * kMiB + 1);
  CHECK_FALSE(limit.admits(100 * kMiB, 5000));
  // Close to the limit the report itself may go beyond it.
  limit.close_reserve();
  CHECK_FALSE(limit.admits(95 * kMiB, 60 * kMiB));
  limit.observe(100 * kMiB);
  limit.observe(103 * kMiB);
  CHECK(limit.admits(103 * kMiB, 5000));
}

TEST_CASE("usage comes from /proc/self/status") {
  const Machine machine;
  machine.file("/proc/self/status",
               "Name:\tx\nVmSize:\t    1000 kB\nVmRSS:\t     200 kB\nVmData:\t  300 kB\n");
  Ceilings seen;
  read_usage(kHook, seen);
  CHECK(seen.vm_bytes == 1000 * 1024);
  CHECK(seen.rss_bytes == 200 * 1024);
  CHECK(seen.data_bytes == 300 * 1024);
}

TEST_CASE("cgroup v2: the lowest limit among the ancestors binds") {
  const Machine machine;
  machine.file("/proc/self/cgroup", "0::/user/app\n");
  machine.file("/cgroup/user/app/memory.max", "max\n");
  machine.file("/cgroup/user/app/memory.current", "700\n");
  machine.file("/cgroup/user/memory.max", "1000000\n");
  machine.file("/cgroup/user/memory.current", "900000\n");
  machine.file("/cgroup/user/memory.stat",
               "anon 1\nfile 2\ninactive_anon 5\ninactive_file 100000\n");
  Ceilings seen;
  read_cgroup(kHook, seen);
  CHECK(seen.cgroup_limit_bytes == 1000000);
  CHECK(seen.cgroup_used_bytes == 800000);
}

// As systemd 257 makes them for a service with Delegate=yes that puts itself into a cgroup below.
TEST_CASE("cgroup v2: one without the memory controller is bounded by its parent") {
  const Machine machine;
  machine.file("/proc/self/cgroup", "0::/system.slice/nn.service/inner\n");
  machine.file("/cgroup/system.slice/nn.service/inner/cgroup.events", "populated 1\nfrozen 0\n");
  machine.file("/cgroup/system.slice/nn.service/memory.max", "104857600\n");
  machine.file("/cgroup/system.slice/nn.service/memory.current", "99000000\n");
  machine.file("/cgroup/system.slice/memory.max", "max\n");
  machine.file("/cgroup/system.slice/memory.current", "200000000\n");
  Ceilings seen;
  CgroupDirectories directories;
  read_cgroup(kHook, seen, &directories);
  CHECK(seen.cgroup_limit_bytes == 104857600);
  CHECK(seen.cgroup_used_bytes == 99000000);
  CHECK(std::string_view{directories.own}.ends_with("/system.slice/nn.service"));
}

TEST_CASE("cgroup v2: the root has no limit; that of a namespace has one") {
  const Machine machine;
  machine.file("/proc/self/cgroup", "0::/\n");
  Ceilings seen;
  read_cgroup(kHook, seen);
  CHECK(seen.cgroup_limit_bytes == 0);  // not mounted: unknown
  machine.file("/cgroup/cgroup.controllers", "cpuset cpu io pids\n");
  read_cgroup(kHook, seen);
  CHECK(seen.cgroup_limit_bytes == 0);  // without the controller: it may be version 1's
  machine.file("/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
  read_cgroup(kHook, seen);
  CHECK(seen.cgroup_limit_bytes == kUnlimited);
  machine.file("/cgroup/memory.max", "64000000\n");
  machine.file("/cgroup/memory.current", "5000000\n");
  seen = {};
  read_cgroup(kHook, seen);
  CHECK(seen.cgroup_limit_bytes == 64000000);
  CHECK(seen.cgroup_used_bytes == 5000000);
}

TEST_CASE("cgroup v1: an invisible path means the mounted root") {
  const Machine machine;
  machine.file("/proc/self/cgroup", "5:cpu,cpuacct:/other\n4:memory:/docker/abc\n0::/\n");
  machine.file("/cgroup/memory/memory.limit_in_bytes", "5000\n");
  machine.file("/cgroup/memory/memory.usage_in_bytes", "4000\n");
  machine.file("/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 500\n");
  Ceilings seen;
  read_cgroup(kHook, seen);
  CHECK(seen.cgroup_limit_bytes == 5000);
  CHECK(seen.cgroup_used_bytes == 3500);
}

TEST_CASE("cgroup v1 without a limit is unlimited; without a cgroup the limit is unknown") {
  const Machine machine;
  Ceilings seen;
  read_cgroup(kHook, seen);
  CHECK(seen.cgroup_limit_bytes == 0);
  machine.file("/proc/self/cgroup", "4:memory:/a\n");
  machine.file("/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  machine.file("/cgroup/memory/a/memory.usage_in_bytes", "4000\n");
  read_cgroup(kHook, seen);
  CHECK(seen.cgroup_limit_bytes == kUnlimited);
  CHECK(seen.cgroup_used_bytes == 4000);
}

TEST_CASE("this machine's own ceilings can be read") {
  const Ceilings seen = read_ceilings(kHook);
  CHECK(seen.vm_bytes > seen.rss_bytes);
  CHECK(seen.rss_bytes > 0);
  CHECK(seen.ram_bytes > seen.rss_bytes);
  CHECK(seen.rlimit_as_bytes != 0);
}

// --- Limits on tasks, mappings and committed memory, read from the files of another machine

namespace {

CountedLimits tasks() {
  CountedLimits limits{};
  limit::read_task_limits(kHook, limits);
  return limits;
}

CountedLimits mappings() {
  CountedLimits limits{};
  limit::read_mapping_limits(kHook, limits);
  return limits;
}

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
  const CountedLimits seen = tasks();
  CHECK(seen.cgroup_tasks == 19);
  CHECK(seen.cgroup_tasks_limit == 20);
}

TEST_CASE("tasks of the cgroup, v2, in a container whose path is invisible") {
  const Machine machine;
  machine.file("/proc/self/cgroup", "0::/docker/abc\n");
  machine.file("/cgroup/pids.current", "50\n");
  machine.file("/cgroup/pids.max", "50\n");
  const CountedLimits seen = tasks();
  CHECK(seen.cgroup_tasks == 50);
  CHECK(seen.cgroup_tasks_limit == 50);
}

TEST_CASE("the machine's tasks and their limit") {
  const Machine machine;
  machine.file("/proc/loadavg", "0.10 0.20 0.30 2/345 6789\n");
  machine.file("/proc/sys/kernel/threads-max", "1000\n");
  machine.file("/proc/sys/kernel/pid_max", "32768\n");
  const CountedLimits seen = tasks();
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
    const CountedLimits seen = tasks();
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
  const CountedLimits seen = mappings();
  CHECK(seen.mappings == 3001);
  CHECK(seen.max_mappings == 3000);
}

TEST_CASE("committed memory is limited only by strict accounting") {
  const Machine machine;
  machine.file("/proc/meminfo", "MemTotal: 9 kB\nCommitLimit:  500 kB\nCommitted_AS:  400 kB\n");
  machine.file("/proc/sys/vm/overcommit_memory", "2\n");
  CHECK(mappings().commit_limit_bytes == 500 * 1024);
  CHECK(mappings().committed_bytes == 400 * 1024);
  // A process keeps a part of the limit free, and all but the administrator's another one.
  const std::uint64_t pages = 12'800 * 1024 / machine::page_bytes();
  machine.file("/proc/self/statm", std::to_string(pages) + " 50 30 1 0 60 0\n");
  machine.file("/proc/sys/vm/user_reserve_kbytes", "62165\n");
  machine.file("/proc/sys/vm/admin_reserve_kbytes", "70\n");
  machine.file("/proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\n");
  CHECK(mappings().commit_limit_bytes == 30 * 1024);
  machine.file("/proc/sys/vm/user_reserve_kbytes", "100\n");
  CHECK(mappings().commit_limit_bytes == 330 * 1024);
  for (const char* mode : {"0\n", "1\n"}) {
    machine.file("/proc/sys/vm/overcommit_memory", mode);
    CHECK(mappings().commit_limit_bytes == kUnlimited);
  }
}

TEST_CASE("without /proc nothing is known") {
  const Machine machine;
  const CountedLimits seen = tasks();
  CHECK(seen.own_tasks + seen.cgroup_tasks + seen.machine_tasks == 0);
  CHECK(mappings().mappings == 0);
}

TEST_CASE("this machine's own limits can be read") {
  CountedLimits seen = tasks();
  CHECK(seen.own_tasks == 1);
  CHECK(seen.machine_tasks > 1);
  CHECK(seen.threads_max > seen.machine_tasks);
  seen = mappings();
  CHECK(seen.mappings > 10);
  CHECK(seen.max_mappings > seen.mappings);
}

TEST_CASE("shared memory of a cgroup, by either version's memory.stat") {
  CHECK(shared_bytes_in("anon 4096\nfile 8192\nshmem 12288\nshmem_thp 5\n") == 12288);
  CHECK(shared_bytes_in("cache 1\nshmem 4096\ntotal_cache 2\ntotal_shmem 8192\n") == 8192);
  CHECK(shared_bytes_in("anon 4096\n") == 0);
  CHECK(shared_bytes_in("") == 0);
}
