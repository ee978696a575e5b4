// The kernel's reports of kills, and programs that kill for memory.
#include "tools/deaths/oom_report.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/unit/tools/deaths/log_query.h"
#include "tools/deaths/user_killers.h"

using namespace oomrec::tests;
using namespace oomrec::tools;
using oomrec::session::UserKiller;

// --- The kernel's report of an OOM kill, as kernels from 2.6.32 to 6.18 write it

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

// --- Kills by earlyoom, systemd-oomd and kubelets, as their logs show them

namespace {

const std::string kHead = "30,77,3599000000,-;";  // a second ago

deaths::KillQuery query() {
  deaths::KillQuery query = log_query();
  query.cgroup = "/system.slice/job.service";
  return query;
}

UserKiller killer_in(const std::string& text, const deaths::KillQuery& of = query()) {
  const auto kill = deaths::user_kill_of(deaths::parse_log(text + "\n", kClock), of);
  return kill ? kill->killer : UserKiller::none;
}

}  // namespace

TEST_CASE("earlyoom names pid and command") {
  const std::string line =
      "earlyoom[312]: sending SIGTERM to process 4711 uid 0 \"train_the_large\": oom_score 805, "
      "VmRSS 1024 MiB, cmdline \"train\"";
  CHECK(killer_in(kHead + line) == UserKiller::earlyoom);
  CHECK(killer_in("2026-11-22T01:19:59+00:00 node7 " + line) == UserKiller::earlyoom);
  const auto kill = deaths::user_kill_of(deaths::parse_log(kHead + line, kClock), query());
  REQUIRE(kill);
  CHECK(kill->line.starts_with("earlyoom: sending SIGTERM to process 4711"));
  // 1.6 called the score otherwise.
  CHECK(killer_in(kHead + "earlyoom[312]: sending SIGKILL to process 4711 uid 0 "
                          "\"train_the_large\": badness 805, VmRSS 1024 MiB") ==
        UserKiller::earlyoom);
  // Of Debian 10.
  CHECK(killer_in(kHead + "earlyoom[312]: killing process 4711 \"train_the_large\" with signal 15: "
                          "badness 566, VmRSS 7391 MiB") == UserKiller::earlyoom);
}

TEST_CASE("another process, program, time or sender is none") {
  const std::string end = " uid 0 \"train_the_large\": oom_score 805, VmRSS 1024 MiB";
  const std::string begin = "earlyoom[312]: sending SIGTERM to process ";
  CHECK(killer_in(kHead + begin + "47110" + end) == UserKiller::none);
  CHECK(killer_in(kHead + begin + "4711 uid 0 \"nginx\": oom_score 3") == UserKiller::none);
  CHECK(killer_in("30,77,3500000000,-;" + begin + "4711" + end) == UserKiller::none);
  CHECK(killer_in(kHead + "cron[312]: sending SIGTERM to process 4711" + end) == UserKiller::none);
  CHECK(killer_in("3" + kHead.substr(2) + begin + "4711" + end) == UserKiller::none);
  deaths::KillQuery elsewhere = query();
  elsewhere.same_pid_namespace = false;
  CHECK(killer_in(kHead + begin + "4711" + end, elsewhere) == UserKiller::none);
}

TEST_CASE("systemd-oomd names the cgroup, or one above it") {
  const auto killed = [](const std::string& path) {
    return killer_in(kHead + "systemd-oomd[521]: Killed " + path +
                     " due to memory pressure for /system.slice being 60.12% > 50.00% for > 20s "
                     "with reclaim activity");
  };
  CHECK(killed("/system.slice/job.service") == UserKiller::systemd_oomd);
  CHECK(killed("/system.slice") == UserKiller::systemd_oomd);
  CHECK(killed("/system.slice/job") == UserKiller::none);
  CHECK(killed("/system.slice/job.service/worker") == UserKiller::none);
  CHECK(killer_in(kHead + "systemd-oomd[521]: Killed /system.slice/job.service due to memory used "
                          "(812) / total (824) and swap used (0) / total (0) being more than "
                          "90.00%") == UserKiller::systemd_oomd);
  // Since 258.
  const std::string marked = kHead +
                             "systemd-oomd[521]: Marked /system.slice/job.service for "
                             "killing due to memory ";
  CHECK(killer_in(marked + "pressure for /system.slice being 60.12% > 50.00% for > 20s with "
                           "reclaim activity") == UserKiller::systemd_oomd);
  CHECK(killer_in(kHead + "systemd-oomd[521]: Marked /system.slice/job for killing due to memory "
                          "pressure for /system.slice") == UserKiller::none);
  CHECK(killer_in(kHead + "systemd[1]: job.service: systemd-oomd killed 3 process(es) in this "
                          "unit.") == UserKiller::systemd_oomd);
  CHECK(killer_in(kHead + "systemd[1]: b.service: systemd-oomd killed 3 process(es) in this "
                          "unit.") == UserKiller::none);
}

TEST_CASE("a kubelet names the pod that it evicts, and the resource before it") {
  deaths::KillQuery in_pod = query();
  in_pod.host = "train-0";
  in_pod.same_pid_namespace = false;
  const std::string host = "2026-11-22T01:19:59+00:00 node7 ";
  const auto evicted = [&](const std::string& resource, const std::string& pod) {
    return killer_in(host +
                         "kubelet[88]: I1122 01:19:59.1 88 eviction_manager.go:368] \"Eviction "
                         "manager: attempting to reclaim\" resourceName=\"" +
                         resource + "\"\n" + host +
                         "kubelet[88]: I1122 01:19:59.4 88 eviction_manager.go:627] \"Eviction "
                         "manager: pod is evicted successfully\" pod=\"" +
                         pod + "\"",
                     in_pod);
  };
  CHECK(evicted("memory", "default/train-0") == UserKiller::kubelet);
  CHECK(evicted("ephemeral-storage", "default/train-0") == UserKiller::none);
  CHECK(evicted("memory", "default/train-01") == UserKiller::none);
  CHECK(evicted("memory", "train-0/web") == UserKiller::none);
  const std::string before_1_21 =
      "kubelet[88]: I1122 01:19:59.1 88 eviction_manager.go:345] eviction manager: attempting to "
      "reclaim memory\n" +
      host +
      "kubelet[88]: I1122 01:19:59.4 88 eviction_manager.go:566] eviction manager: pod "
      "train-0_default(89c1) is evicted successfully";
  CHECK(killer_in(host + before_1_21, in_pod) == UserKiller::kubelet);
  in_pod.host = "train";
  CHECK(killer_in(host + before_1_21, in_pod) == UserKiller::none);
}

TEST_CASE("Meta's oomd names the cgroup, in /dev/kmsg and under no name of its own") {
  const auto killed = [](const std::string& path, const std::string& by) {
    return killer_in("12,77,3599000000,-;oomd kill: 9.72 6.17 1.32 " + path +
                     " 123456 ruleset:[user session] detectorgroup:[memory pressure] killer:" + by +
                     " v2");
  };
  const std::string own = "system.slice/job.service", growth = "kill_by_memory_size_or_growth";
  CHECK(killed(own, growth) == UserKiller::oomd);
  CHECK(killed("system.slice", "kill_by_swap_usage") == UserKiller::oomd);
  CHECK(killed(own, "kill_by_pg_scan") == UserKiller::oomd);
  CHECK(killed("system.slice/job", growth) == UserKiller::none);
  CHECK(killed("system.slice/job.service/worker", growth) == UserKiller::none);
  CHECK(killed(own, "(dry)" + growth) == UserKiller::none);
  CHECK(killed(own, "kill_by_io_cost") == UserKiller::none);
  CHECK(killed(own, "kill_by_pressure") == UserKiller::none);  // of memory or of I/O
  CHECK(killer_in("12,77,3599000000,-;oomd kill: restarted systemd service=job.service") ==
        UserKiller::none);
}

TEST_CASE("nohang names its victim, then the signal") {
  const auto killed = [](const std::string& victim, const std::string& action) {
    return killer_in(kHead + "nohang[88]: Process with highest badness (found in 55ms):\n" + kHead +
                     "nohang[88]:   PID: " + victim + ", badness: 121\n" + kHead +
                     "nohang[88]: Implementing a corrective action:\n" + kHead +
                     "nohang[88]:   " + action);
  };
  const std::string action = "Sending SIGTERM to the victim";
  CHECK(killed("4711, Name: train_the_large", action) == UserKiller::nohang);
  CHECK(killed("4711, name: train_the_large", action) == UserKiller::nohang);
  CHECK(killed("4712, Name: train_the_large", action) == UserKiller::none);
  CHECK(killed("4711, Name: nginx", action) == UserKiller::none);
  CHECK(killed("4711, Name: train_the_large", "Executing the command: true") == UserKiller::none);
  CHECK(killed("4711, Name: train_the_large\n" + kHead + "nohang[88]:   PID: 5, Name: x", action) ==
        UserKiller::none);
}

TEST_CASE("lmkd names command and pid, Talos the cgroup") {
  const std::string end = ", uid 10123, oom_score_adj 900 to free 54321kB rss, 1200kB swap";
  const std::string lmkd = kHead + "lowmemorykiller[450]: Kill 'train_the_large' (";
  CHECK(killer_in(lmkd + "4711)" + end) == UserKiller::lmkd);
  CHECK(killer_in(lmkd + "4712)" + end) == UserKiller::none);
  const auto talos = [](const std::string& cgroup) {
    return killer_in(
        "user: warning: [2026-11-22T01:19:59.000061988Z]: [talos] Sending SIGKILL to "
        "cgroup {\"component\": \"controller-runtime\", \"controller\": "
        "\"runtime.OOMController\", \"cgroup\": \"/sys/fs/cgroup" +
        cgroup + "\"}");
  };
  CHECK(talos("/system.slice/job.service") == UserKiller::talos);
  CHECK(talos("/system.slice") == UserKiller::talos);
  CHECK(talos("/system.slice/job.service/below") == UserKiller::none);
}
