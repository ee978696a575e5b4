// The kernel's report of an OOM kill, as kernels from 2.6.32 to 6.18 write it.
#include "tools/deaths/oom_report.h"

#include <doctest/doctest.h>

using namespace oomrec::tools;

namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kPage = 4096;

deaths::OomReport report_of(std::string_view lines) {
  deaths::OomReportReader reader;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    reader.read(line);
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
  }
  return reader.take(0, 0);
}

constexpr const char* kRecent =
    "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n"
    "CPU: 1 UID: 0 PID: 18303 Comm: python3 Not tainted 6.18.44 #1 PREEMPT(none)\n"
    "memory: usage 102400kB, limit 102400kB, failcnt 21\n"
    "swap: usage 0kB, limit 0kB, failcnt 0\n"
    "Memory cgroup stats for /job:\n"
    "anon 72859648\nfile 31457280\nkernel 1048576\nkernel_stack 65536\npagetables 344064\n"
    "sock 4096\nshmem 31457280\nslab 524288\nworkingset_refault_file 20\n"
    "audit: type=1400 unrelated 5 words here\n"
    "Tasks state (memory values in pages):\n"
    "[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents "
    "oom_score_adj name\n"
    "[  14701]     0 14700    22598    21787    12449     1658      7680   225280        0        "
    "     0 python3\n"
    "[  14747]     0 14747    16966     7557     6817      740         0   118784        0        "
    "  -998 a (b) c\n";

}  // namespace

TEST_CASE("a kernel of today") {
  const deaths::OomReport report = report_of(kRecent);
  CHECK_FALSE(report.of_machine);
  CHECK_FALSE(report.is_mixed);
  CHECK(report.usage_bytes == 102400 * kKiB);
  CHECK(report.limit_bytes == 102400 * kKiB);
  CHECK(report.statistics.anonymous == 72859648);
  CHECK(report.statistics.shared == 31457280);
  CHECK(report.statistics.slab == 524288);
  CHECK(report.statistics.all_kernel() == 1048576 - 524288 + 4096);
  REQUIRE(report.processes.size() == 2);
  CHECK(report.processes[0].pid == 14700);
  CHECK(report.process(14701) == &report.processes[0]);  // by its thread
  CHECK(report.process(14702) == nullptr);
  CHECK(report.processes[0].rss_bytes == 21787 * kPage);
  CHECK(report.processes[0].anonymous_bytes == 12449 * kPage);
  CHECK(report.processes[0].shared_bytes == 7680 * kPage);
  CHECK(report.processes[1].name == "a (b) c");
}

TEST_CASE("cgroups of version 1: the sums with all cgroups below count, the kernel's apart") {
  const deaths::OomReport report = report_of(
      "memory: usage 204800kB, limit 204800kB, failcnt 0\n"
      "memory+swap: usage 204800kB, limit 204800kB, failcnt 0\n"
      "kmem: usage 516kB, limit 9007199254740988kB, failcnt 0\n"
      "Memory cgroup stats for /job:\n"
      "cache 0\nrss 4096\nshmem 0\ntotal_cache 31457280\ntotal_rss 72859648\n"
      "total_shmem 31457280\n");
  CHECK(report.statistics.anonymous == 72859648);
  CHECK(report.statistics.file == 31457280);
  CHECK(report.statistics.all_kernel() == 516 * kKiB);
}

TEST_CASE("of both limits of version 1, the one that was reached") {
  const std::string memory = "memory: usage 700000kB, limit 819200kB, failcnt 412\n";
  const deaths::OomReport swapped =
      report_of(memory + "memory+swap: usage 1048576kB, limit 1048576kB, failcnt 38\n");
  CHECK(swapped.usage_bytes == 1048576 * kKiB);
  CHECK(swapped.limit_bytes == 1048576 * kKiB);
  CHECK_FALSE(swapped.is_mixed);
  const deaths::OomReport neither =
      report_of(memory + "memory+swap: usage 700000kB, limit 1048576kB, failcnt 0\n");
  CHECK(neither.limit_bytes == 819200 * kKiB);
}

TEST_CASE("the log of a machine with pages of another size") {
  deaths::OomReportReader reader;
  for (const char* const line :
       {"Mem-Info:", " free:1000 free_pcp:12 free_cma:0", "260000 pages RAM",
        "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name",
        "[   1100]  1000  1100   900000    90000   949152        0           300 chromium"})
    reader.read(line);
  const deaths::OomReport report = reader.take(1100, 1440000 * kKiB);
  CHECK(report.processes.at(0).rss_bytes == 1440000 * kKiB);
  CHECK(report.limit_bytes == 260000 * 16 * kKiB);
  CHECK(report.usage_bytes == 259000 * 16 * kKiB);
}

TEST_CASE("until 5.1, a line for each cgroup below") {
  const deaths::OomReport report = report_of(
      "memory: usage 65536kB, limit 65536kB, failcnt 21\n"
      "Memory cgroup stats for /job: cache:4KB rss:1024KB rss_huge:0KB shmem:0KB\n"
      "Memory cgroup stats for /job/a: cache:8KB rss:62464KB rss_huge:0KB shmem:4KB swap:0KB\n"
      "[ pid ]   uid  tgid total_vm      rss nr_ptes nr_pmds swapents oom_score_adj name\n"
      "[ 2001]  1000  2001    30000    15872      60       3        0             0 python3\n");
  CHECK(report.statistics.anonymous == (1024 + 62464) * kKiB);
  CHECK(report.statistics.file == 12 * kKiB);
  CHECK(report.statistics.shared == 4 * kKiB);
  REQUIRE(report.processes.size() == 1);
  CHECK(report.processes[0].rss_bytes == 15872 * kPage);
  CHECK(report.processes[0].anonymous_bytes == 0);
}

TEST_CASE("2.6.32 had the fewest columns") {
  const deaths::OomReport report = report_of(
      "memory: usage 65536kB, limit 65536kB, failcnt 21\n"
      "[ pid ]   uid  tgid total_vm      rss cpu oom_adj name\n"
      "[ 2001]    48  2001    30000    15872   1       0 httpd\n");
  REQUIRE(report.processes.size() == 1);
  CHECK(report.processes[0].name == "httpd");
}

TEST_CASE("the machine was full") {
  const deaths::OomReport report = report_of(
      "Mem-Info:\n"
      "active_anon:1000 inactive_anon:200000 isolated_anon:0\n"
      " active_file:50 inactive_file:70 isolated_file:0\n"
      " slab_reclaimable:3000 slab_unreclaimable:4000\n"
      " mapped:900 shmem:1000 pagetables:700\n"
      " free:5000 free_pcp:12 free_cma:0\n"
      "Node 0 active_anon:4000kB inactive_anon:800000kB kernel_stack:3200kB pagetables:2800kB\n"
      "Node 0 DMA free:1234kB min:12kB\n"
      "262144 pages RAM\n0 pages HighMem/MovableOnly\n12144 pages reserved\n");
  CHECK(report.of_machine);
  CHECK(report.limit_bytes == 250000 * kPage);
  CHECK(report.usage_bytes == 245000 * kPage);
  CHECK(report.statistics.anonymous == 200000 * kPage);
  CHECK(report.statistics.file == 1120 * kPage);
  CHECK(report.statistics.slab == 7000 * kPage);
  CHECK(report.statistics.stacks == 3200 * kKiB);
}

TEST_CASE("two reports in one another have no sums; a new one starts afresh") {
  const std::string usage = "memory: usage 65536kB, limit 65536kB, failcnt 21\n";
  CHECK(report_of(usage + usage).is_mixed);
  const deaths::OomReport fresh = report_of(std::string{kRecent} + kRecent);
  CHECK_FALSE(fresh.is_mixed);
  CHECK(fresh.processes.size() == 2);
}
