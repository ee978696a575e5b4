// Kills by earlyoom, systemd-oomd and kubelets, as their logs show them.
#include "tools/deaths/user_killers.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/unit/tools/deaths/log_query.h"

using namespace oomrec::tests;
using namespace oomrec::tools;
using oomrec::session::UserKiller;

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
