// OOM kills in the formats of kernels since 2.6.32, and their processes.
#include "tools/deaths/kernel_kills.h"

#include <doctest/doctest.h>

using namespace oomrec::tools;
using oomrec::session::KernelLine;

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kMiB = 1 << 20;

// One record a line, a millisecond apart, from second 1000 on.
std::vector<deaths::KernelKill> kills_of(const std::string& lines) {
  deaths::KernelLog log;
  std::uint64_t time = 1000 * kSecond;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = lines.find('\n', at);
    log.records.push_back({time += 1'000'000, lines.substr(at, end - at)});
    at = end + 1;
  }
  return deaths::kills_in(log);
}

deaths::KernelKill only_kill(const std::string& lines) {
  const std::vector<deaths::KernelKill> kills = kills_of(lines);
  REQUIRE(kills.size() == 1);
  return kills.front();
}

const std::string kDocker = "/docker/8d2c5fbb1d0e4a6f9f0b6b3f6e1f2c7a";
const std::string kKubernetes =
    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1f.slice/"
    "cri-containerd-9a.scope";
const std::string kSystemd = "/user.slice/user-1000.slice/user@1000.service/app.slice/run-u7.scope";

std::string summary(const std::string& limited, const std::string& cgroup, int pid) {
  return "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=" +
         limited + ",task_memcg=" + cgroup + ",task=python3,pid=" + std::to_string(pid) +
         ",uid=1000\n";
}

std::string killed(int pid, const std::string& name = "python3", int anon_mib = 60) {
  return "Memory cgroup out of memory: Killed process " + std::to_string(pid) + " (" + name +
         ") total-vm:900000kB, anon-rss:" + std::to_string(anon_mib * 1024) +
         "kB, file-rss:4096kB, shmem-rss:0kB, UID:1000 pgtables:388kB oom_score_adj:0\n";
}

deaths::KillQuery python(std::uint64_t pid) {
  deaths::KillQuery query;
  query.pid = pid;
  query.same_pid_namespace = true;
  query.names = {"python3.11", "python3"};
  query.from_realtime_ns = 995 * kSecond;
  query.to_realtime_ns = 1010 * kSecond;
  query.rss_bytes = 50 * kMiB;
  query.most_bytes = 64 * kMiB;
  return query;
}

}  // namespace

TEST_CASE("a kernel since 5.1") {
  const deaths::KernelKill kill = only_kill(
      "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n"
      "memory: usage 65536kB, limit 65536kB, failcnt 21\n" +
      summary("/limited", "/limited/below", 4711) + killed(4711) +
      "oom_reaper: reaped process 4711 (python3), now anon-rss:0kB, file-rss:0kB, "
      "shmem-rss:0kB\n");
  CHECK(kill.pid == 4711);
  CHECK(kill.name == "python3");
  CHECK(kill.kind == KernelLine::cgroup);
  CHECK(kill.limited_cgroup == "/limited");
  CHECK(kill.cgroup == "/limited/below");
  CHECK(kill.resident.rss_bytes == 64 * kMiB);
  CHECK(kill.line.starts_with("Memory cgroup out of memory: Killed process 4711"));
}

TEST_CASE("the machine ran out of memory") {
  const deaths::KernelKill kill = only_kill(
      "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
      "task_memcg=" +
      kSystemd +
      ",task=a (b) c,pid=99,uid=0\n"
      "Out of memory: Killed process 99 (a (b) c) total-vm:900kB, anon-rss:512kB, file-rss:0kB, "
      "shmem-rss:0kB, UID:0 pgtables:388kB oom_score_adj:0\n");
  CHECK(kill.kind == KernelLine::system);
  CHECK(kill.name == "a (b) c");
  CHECK(kill.cgroup == kSystemd);
  CHECK(kill.limited_cgroup.empty());
}

TEST_CASE("kills by the machine's rules that do not say that the machine was full") {
  const auto kind = [](const std::string& invocation, const std::string& constraint) {
    return only_kill(invocation + " oom_score_adj=0\noom-kill:constraint=" + constraint +
                     ",nodemask=(null),cpuset=b7c0,mems_allowed=0,global_oom,task_memcg=/,task=x,"
                     "pid=99,uid=0\nOut of memory: Killed process 99 (x) total-vm:900kB, "
                     "anon-rss:512kB, file-rss:0kB, shmem-rss:0kB, UID:0\n")
        .kind;
  };
  const std::string page = "x invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0,";
  CHECK(kind(page, "CONSTRAINT_NONE") == KernelLine::system);
  CHECK(kind(page, "CONSTRAINT_CPUSET") == KernelLine::cpuset);
  CHECK(kind(page, "CONSTRAINT_MEMORY_POLICY") == KernelLine::policy);
  CHECK(kind("x invoked oom-killer: gfp_mask=0x0(), order=0,", "CONSTRAINT_NONE") ==
        KernelLine::page_fault);
  CHECK(kind("kworker/1:2 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=-1,",
             "CONSTRAINT_NONE") == KernelLine::sysrq);
  CHECK(kind("SysRq : Manual OOM execution\nx invoked oom-killer: gfp_mask=0xd0, order=0,",
             "CONSTRAINT_NONE") == KernelLine::sysrq);
  // Of an earlier invocation.
  CHECK(kind("y invoked oom-killer: gfp_mask=0x0, order=0, oom_score_adj=0\n" + page,
             "CONSTRAINT_NONE") == KernelLine::system);
  // A cgroup's limit is one whoever asks.
  CHECK(kind("x invoked oom-killer: gfp_mask=0x0, order=0,", "CONSTRAINT_MEMCG") ==
        KernelLine::cgroup);
}

TEST_CASE("kernels until 4.20 log the reason in one line and the victim in the next") {
  const std::string old =
      "Task in " + kDocker + " killed as a result of limit of " + kDocker +
      "\n"
      "Memory cgroup out of memory: Kill process 123 (python3) score 900 or sacrifice child\n"
      "Killed process 124 (python3) total-vm:9kB, anon-rss:1024kB, file-rss:0kB, shmem-rss:0kB\n";
  const deaths::KernelKill kill = only_kill(old);
  CHECK(kill.pid == 124);  // the child that was sacrificed
  CHECK(kill.kind == KernelLine::cgroup);
  CHECK(kill.cgroup == kDocker);
  CHECK(kill.limited_cgroup == kDocker);

  const deaths::KernelKill system = only_kill(
      "Out of memory: Kill process 123 (python3) score 900 or sacrifice child\n"
      "Killed process 123 (python3) total-vm:9kB, anon-rss:1024kB, file-rss:0kB, shmem-rss:0kB\n");
  CHECK(system.kind == KernelLine::system);

  const deaths::KernelKill oldest = only_kill(
      "Out of memory: Kill process 123 (httpd) score 900 or sacrifice child\n"
      "Killed process 123, UID 48, (httpd) total-vm:9kB, anon-rss:1024kB, file-rss:4kB\n");
  CHECK(oldest.name == "httpd");
  CHECK(oldest.resident.rss_bytes == 1028 * 1024);

  const deaths::KernelKill rhel = only_kill(
      "Memory cgroup out of memory: Kill process 123 (java) score 900 or sacrifice child\n"
      "Killed process 123 (java), UID 1000, total-vm:9kB, anon-rss:1024kB, file-rss:4kB, "
      "shmem-rss:0kB\n");
  CHECK(rhel.name == "java");
  CHECK(rhel.kind == KernelLine::cgroup);
}

TEST_CASE("the allocating task may be the one that is killed") {
  CHECK(only_kill("Out of memory (oom_kill_allocating_task): Killed process 7 (x) total-vm:9kB, "
                  "anon-rss:4kB, file-rss:0kB, shmem-rss:0kB\n")
            .name == "x");
}

TEST_CASE("a group that is killed together has a line for each process, and one for the cgroup") {
  const std::vector<deaths::KernelKill> kills =
      kills_of(summary("/job", "/job/a", 10) + killed(10) +
               "Tasks in /job are going to be killed due to memory.oom.group set\n" + killed(10) +
               killed(11, "worker") + killed(12, "worker"));
  REQUIRE(kills.size() == 4);
  CHECK(kills[0].cgroup == "/job/a");
  CHECK(kills[3].limited_cgroup == "/job");
  deaths::KillQuery worker = python(70);  // in a pid namespace of its own
  worker.same_pid_namespace = false;
  worker.names = {"worker"};
  worker.cgroup = "/job/b";
  CHECK(deaths::kill_of(kills, worker)->pid == 12);
  deaths::KillQuery gone_before = worker;
  gone_before.from_realtime_ns = 980 * kSecond;  // no sign of life for 20 s
  CHECK(deaths::kill_of(kills, gone_before) == nullptr);
  worker.cgroup = "/jobs";
  CHECK(deaths::kill_of(kills, worker) == nullptr);
}

TEST_CASE("if only the reaper's line is left, it is used") {
  const deaths::KernelKill kill =
      only_kill("oom_reaper: reaped process 5 (python3), now anon-rss:0kB, file-rss:0kB\n");
  CHECK(kill.kind == KernelLine::none);
  CHECK(deaths::kill_of({kill}, python(5)) != nullptr);
}

TEST_CASE("incomplete and unrelated lines are ignored") {
  CHECK(kills_of("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null)\n"
                 "Tasks in \nTask in x\npython3 invoked oom-killer: gfp_mask=0x0\n")
            .empty());
  CHECK(only_kill("Killed process \n").pid == 0);
}

TEST_CASE("in the same pid namespace, pid and name match") {
  const std::vector<deaths::KernelKill> kills =
      kills_of(summary("/job", "/job", 20) + killed(20) + killed(21));
  CHECK(deaths::kill_of(kills, python(20))->pid == 20);
  CHECK(deaths::kill_of(kills, python(22)) == nullptr);

  SUBCASE("another program had this pid") {
    deaths::KillQuery other = python(20);
    other.names = {"bash"};
    CHECK(deaths::kill_of(kills, other) == nullptr);
    other.cgroup = "/job";  // it has changed its name since
    CHECK(deaths::kill_of(kills, other) != nullptr);
  }
  SUBCASE("the kernel named the bundle's writer, which shares its memory") {
    deaths::KillQuery query = python(22);
    query.helper_pid = 21;
    CHECK(deaths::kill_of(kills, query)->pid == 21);
    CHECK_FALSE(deaths::only_others_killed(kills, query));
  }
  SUBCASE("the name is cut by the kernel") {
    deaths::KillQuery other = python(30);
    other.names = {"a_very_long_program_name"};
    CHECK(deaths::kill_of(kills_of(killed(30, "a_very_long_pro")), other) != nullptr);
  }
  SUBCASE("the kill was before its last sign of life, or another boot's") {
    deaths::KillQuery later = python(20);
    later.from_realtime_ns = 1001 * kSecond;
    CHECK(deaths::kill_of(kills, later) == nullptr);
    deaths::KillQuery earlier = python(20);
    earlier.to_realtime_ns = 999 * kSecond;
    CHECK(deaths::kill_of(kills, earlier) == nullptr);
  }
  SUBCASE("a process with its name was killed in the same cgroup") {
    deaths::KillQuery like = python(22);
    like.cgroup = "/job";
    CHECK(deaths::kill_of(kills, like) == nullptr);
  }
}

TEST_CASE("in a container, cgroup, name and size match") {
  for (const std::string& cgroup : {kDocker, kKubernetes, kSystemd}) {
    const std::vector<deaths::KernelKill> kills =
        kills_of(summary(cgroup, cgroup, 31337) + killed(31337));
    deaths::KillQuery inside = python(17);
    inside.same_pid_namespace = false;
    inside.cgroup = cgroup;
    CHECK(deaths::kill_of(kills, inside) != nullptr);

    inside.cgroup = cgroup.substr(cgroup.rfind('/'));  // as a namespace shows it
    CHECK(deaths::kill_of(kills, inside) != nullptr);
    inside.cgroup = "/";  // one that shows nothing
    CHECK(deaths::kill_of(kills, inside) == nullptr);

    inside.cgroup = cgroup;
    SUBCASE("another program") {
      inside.names = {"nginx"};
      CHECK(deaths::kill_of(kills, inside) == nullptr);
    }
    SUBCASE("it held far more, or could not hold so much") {
      inside.rss_bytes = 900 * kMiB;
      CHECK(deaths::kill_of(kills, inside) == nullptr);
      inside.rss_bytes = inside.most_bytes = 2 * kMiB;
      CHECK(deaths::kill_of(
                kills_of(summary(cgroup, cgroup, 31337) + killed(31337, "python3", 800)), inside) ==
            nullptr);
    }
    SUBCASE("another container") {
      inside.cgroup = "/docker/ffff";
      CHECK(deaths::kill_of(kills, inside) == nullptr);
    }
  }
}

TEST_CASE("the log may contain only kills of other processes") {
  const std::vector<deaths::KernelKill> kills = kills_of(summary("/job", "/job", 20) + killed(20));
  deaths::KillQuery query = python(22);
  CHECK(deaths::only_others_killed(kills, query));
  CHECK_FALSE(deaths::only_others_killed(kills, python(20)));
  CHECK_FALSE(deaths::only_others_killed({}, query));
  query.cgroup = "/job";
  CHECK(deaths::only_others_killed(kills, query));
  query.cgroup = "/elsewhere";
  CHECK_FALSE(deaths::only_others_killed(kills, query));
  CHECK(deaths::only_others_killed(kills_of(killed(20)), query));
  query.from_realtime_ns = 1005 * kSecond;
  CHECK_FALSE(deaths::only_others_killed(kills_of(killed(20)), query));
}

namespace {

std::string report(int pid, int thread) {
  return "x invoked oom-killer: order=0\nmemory: usage 65536kB, limit 65536kB, failcnt 21\n"
         "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\n"
         "[  " +
         std::to_string(thread) + "]     0 " + std::to_string(pid) +
         "    22598    21787   225280        0             0 python3\n";
}

}  // namespace

TEST_CASE("a kill has the report before it; one without a report has none") {
  const auto kills = kills_of(report(20, 20) + killed(20) + killed(20));
  REQUIRE(kills.size() == 2);
  REQUIRE(kills[0].report != nullptr);
  CHECK(kills[0].report->usage_bytes == 64 * kMiB);
  CHECK(kills[1].report == nullptr);
  // The table is of other processes: lines are missing.
  CHECK(only_kill(report(30, 30) + killed(20)).report == nullptr);
}

TEST_CASE("the log names a thread if the first one has ended") {
  deaths::KillQuery query = python(20);
  query.threads = {20, 21};
  CHECK(deaths::kill_of(kills_of(killed(21)), query) != nullptr);
  CHECK(deaths::kill_of(kills_of(killed(22)), query) == nullptr);
  // By the table it is a thread of this process, or of another.
  CHECK(deaths::kill_of(kills_of(report(20, 25) + killed(25)), query) != nullptr);
  CHECK(deaths::kill_of(kills_of(report(40, 21) + killed(21)), query) == nullptr);
}

TEST_CASE("reports of two threads of the kernel interleave") {
  deaths::KernelLog log;
  const auto add = [&](const char* caller, const std::string& text) {
    log.records.push_back({1000 * kSecond, text, "kernel", caller});
  };
  for (const char* const caller : {"T1", "T2"})
    add(caller, "memory: usage 65536kB, limit 65536kB, failcnt 21");
  for (const char* const caller : {"T1", "T2"})
    add(caller, "[  pid  ]   uid  tgid total_vm      rss name");
  add("T2", "[   12]     0 12    22598    21787 two");
  add("T1", "[   11]     0 11    22598    21787 one");
  add("T1", "Memory cgroup out of memory: Killed process 11 (one) total-vm:9kB");
  add("T2", "Memory cgroup out of memory: Killed process 12 (two) total-vm:9kB");
  const auto kills = deaths::kills_in(log);
  REQUIRE(kills.size() == 2);
  for (const deaths::KernelKill& kill : kills) {
    REQUIRE(kill.report != nullptr);
    CHECK(kill.report->processes.size() == 1);
  }
}
