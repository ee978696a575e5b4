// Limits on memory: the soft limit with its reserve, and ceilings from fixture files.
#include <doctest/doctest.h>

#include "common/limits/ceilings.h"
#include "common/limits/cgroup.h"
#include "common/session/layout.h"
#include "recorder/live/soft_limit.h"
#include "tests/unit/common/limits/machine.h"

using namespace oomrec;
using namespace oomrec::limit;
using oomrec::tests::Machine;

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
  Machine machine;
  machine.file("/proc/self/status",
               "Name:\tx\nVmSize:\t    1000 kB\nVmRSS:\t     200 kB\nVmData:\t  300 kB\n");
  Ceilings seen;
  read_usage(kHook, seen);
  CHECK(seen.vm_bytes == 1000 * 1024);
  CHECK(seen.rss_bytes == 200 * 1024);
  CHECK(seen.data_bytes == 300 * 1024);
}

TEST_CASE("cgroup v2: the lowest limit among the ancestors binds") {
  Machine machine;
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
  Machine machine;
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
  Machine machine;
  machine.file("/proc/self/cgroup", "0::/\n");
  Ceilings seen;
  read_cgroup(kHook, seen);
  CHECK(seen.cgroup_limit_bytes == 0);  // not mounted: unknown
  machine.file("/cgroup/cgroup.controllers", "cpuset cpu io pids\n");
  read_cgroup(kHook, seen);
  CHECK(seen.cgroup_limit_bytes == 0);  // without the controller: it may be version 1's
  machine.file("/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
  read_cgroup(kHook, seen);
  CHECK(seen.cgroup_limit_bytes == session::kUnlimited);
  machine.file("/cgroup/memory.max", "64000000\n");
  machine.file("/cgroup/memory.current", "5000000\n");
  seen = {};
  read_cgroup(kHook, seen);
  CHECK(seen.cgroup_limit_bytes == 64000000);
  CHECK(seen.cgroup_used_bytes == 5000000);
}

TEST_CASE("cgroup v1: an invisible path means the mounted root") {
  Machine machine;
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
  Machine machine;
  Ceilings seen;
  read_cgroup(kHook, seen);
  CHECK(seen.cgroup_limit_bytes == 0);
  machine.file("/proc/self/cgroup", "4:memory:/a\n");
  machine.file("/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  machine.file("/cgroup/memory/a/memory.usage_in_bytes", "4000\n");
  read_cgroup(kHook, seen);
  CHECK(seen.cgroup_limit_bytes == session::kUnlimited);
  CHECK(seen.cgroup_used_bytes == 4000);
}

TEST_CASE("this machine's own ceilings can be read") {
  const Ceilings seen = read_ceilings(kHook);
  CHECK(seen.vm_bytes > seen.rss_bytes);
  CHECK(seen.rss_bytes > 0);
  CHECK(seen.ram_bytes > seen.rss_bytes);
  CHECK(seen.rlimit_as_bytes != 0);
}

TEST_CASE("shared memory of a cgroup, by either version's memory.stat") {
  CHECK(shared_bytes_in("anon 4096\nfile 8192\nshmem 12288\nshmem_thp 5\n") == 12288);
  CHECK(shared_bytes_in("cache 1\nshmem 4096\ntotal_cache 2\ntotal_shmem 8192\n") == 8192);
  CHECK(shared_bytes_in("anon 4096\n") == 0);
  CHECK(shared_bytes_in("") == 0);
}
