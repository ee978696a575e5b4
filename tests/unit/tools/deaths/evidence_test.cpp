// Evidence of a death and the verdict on it, end to end from the kernel's files.
#include "tools/deaths/evidence.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/verdict/verdict.h"
#include "tests/unit/common/bundle/session_image.h"
#include "tests/unit/tools/deaths/fake_system.h"
#include "tools/deaths/ending.h"

using namespace oomrec;
using namespace oomrec::tools;
using oomrec::tests::FakeSystem;

namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr int kSigKill = 9;
constexpr int kSigSegv = 11;

// A Python process that held 640 MiB in a cgroup of 700 MiB, and took its last sample a second ago.
struct Scene : session::TrainingSession, FakeSystem {
  Scene() {
    header().pid = 4711;
    gethostname(header().host, sizeof header().host - 1);
    proc("sys/kernel/random/boot_id", "8f3a0c52-6d0e-4d7a-9c55-0d5a4a0f7c11\n");
    REQUIRE(system::boot_id(header().boot_id));
    header().start_realtime_ns = system::realtime_ns() - 60'000'000'000;
    header().start_monotonic_ns = system::monotonic_ns() - 60'000'000'000;
    header().last_tick_ns = system::monotonic_ns() - 1'000'000'000;
    std::strcpy(session_thread().name, "python3");
    header().tables[static_cast<std::size_t>(session::TableId::failures)].committed = 1;

    in_cgroup("memory/job");
    file(job / "memory.oom_control", "oom_kill 1\n");
    proc("vmstat", "oom_kill 8\n");
    header().pid_namespace = 4026531836;  // the initial one
    session::Health& health = header().health;
    health.time_ns = header().last_tick_ns.load();
    health.rss_bytes = 600 * kMiB;
    health.cgroup_used_bytes = 650 * kMiB;
    health.cgroup_limit_bytes = 700 * kMiB;
    health.available_bytes = 8192 * kMiB;
    health.cgroup_oom_kills = 0;
    health.system_oom_kills = 7;
    log("");
  }
  ~Scene() { unsetenv("OOMREC_KERNEL_LOG"); }

  session::Thread& session_thread() {
    return *reinterpret_cast<session::Thread*>(
        bytes().data() +
        header().tables[static_cast<std::size_t>(session::TableId::threads)].chunk_offsets[0] +
        thread * sizeof(session::Thread));
  }

  void in_cgroup(const std::string& path) {
    job = cgroup(path);
    header().cgroup = string(job.native());
    header().cgroup_path = string("/" + path.substr(path.find('/') + 1));
  }

  // A log since boot, with these lines half a second ago.
  void log(const std::string& lines) {
    const std::uint64_t at = system::monotonic_ns() / 1000 - 500'000;
    std::string text = "6,0,0,-;Linux version\n";
    for (std::size_t from = 0; from < lines.size();) {
      const std::size_t end = lines.find('\n', from);
      text += "3,1," + std::to_string(at) + ",-;" + lines.substr(from, end - from) + "\n";
      from = end + 1;
    }
    file(path() + "/kmsg", text);
    setenv("OOMREC_KERNEL_LOG", (path() + "/kmsg").c_str(), 1);
  }
  void no_log() { setenv("OOMREC_KERNEL_LOG", "/nowhere", 1); }

  // As `oomrec run` observes it.
  deaths::DeathObservation observed(int wait_status) const {
    deaths::DeathObservation seen;
    seen.wait_status = wait_status;
    seen.cgroup = {job, "/job"};
    seen.kills_before = 0;
    seen.parent_kills_before = 0;
    seen.system_kills_before = 7;
    return seen;
  }

  std::string verdict(const deaths::DeathObservation& seen = {}) const {
    return std::string{name_of(deaths::ending_of(view(), seen).verdict)};
  }

  std::filesystem::path job;
};

std::string kill_line(int pid, const std::string& name = "python3",
                      const std::string& cgroup = "/job") {
  return "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=" +
         cgroup + ",task_memcg=" + cgroup + ",task=" + name + ",pid=" + std::to_string(pid) +
         ",uid=0\nMemory cgroup out of memory: Killed process " + std::to_string(pid) + " (" +
         name + ") total-vm:1kB, anon-rss:665600kB, file-rss:0kB, shmem-rss:0kB, UID:0\n";
}

}  // namespace

TEST_CASE("a line in the kernel's log is proof, with or without a wait status") {
  Scene scene;
  scene.log(kill_line(4711));
  const deaths::Ending ending = deaths::ending_of(scene.view(), {});
  CHECK(name_of(ending.verdict) == "cgroup_oom_kill");
  CHECK(ending.outcome_text() == "oom_killed");
  CHECK(std::string{ending.death().kernel_line}.starts_with("Memory cgroup out of memory: Killed"));
  CHECK(ending.death().realtime_ns < system::realtime_ns() - 400'000'000);  // when it was killed
  CHECK(scene.verdict(scene.observed(kSigKill)) == "cgroup_oom_kill");
  // But not of a process that ended otherwise.
  CHECK(scene.verdict(scene.observed(kSigSegv)) == "crashed");
  CHECK(scene.verdict(scene.observed(0)) == "unknown");

  scene.log("Out of memory: Killed process 4711 (python3) total-vm:1kB, anon-rss:665600kB\n");
  CHECK(scene.verdict() == "system_oom_kill");
}

TEST_CASE("without a report of the cgroup, the line about the kill has what the process had") {
  // Of more than ten kills in five seconds the kernel reports no more than these lines.
  Scene scene;
  scene.log(kill_line(4711));
  scene.file(scene.job / "memory.limit_in_bytes", std::to_string(700 * kMiB) + "\n");
  scene.file(scene.job / "memory.usage_in_bytes", std::to_string(30 * kMiB) + "\n");
  const session::CgroupAccount account =
      deaths::end_evidence_of(scene.view(), scene.observed(kSigKill)).account;
  CHECK(account.source_kind() == session::AccountSource::kill_line);
  CHECK(account.is_own_at_kill());
  CHECK_FALSE(account.is_at_kill());
  CHECK(account.own_anonymous_bytes == 650 * kMiB);
  CHECK(account.usage_bytes == 680 * kMiB);
  CHECK(account.limit_bytes == 700 * kMiB);

  SUBCASE("also if the cgroup is gone") {
    std::filesystem::remove_all(scene.job);
    const session::CgroupAccount left =
        deaths::end_evidence_of(scene.view(), scene.observed(kSigKill)).account;
    CHECK(left.usage_bytes == 0);
    CHECK(left.own_anonymous_bytes == 650 * kMiB);
  }
  SUBCASE("without the line it is what the process itself last read") {
    scene.no_log();
    const session::CgroupAccount own =
        deaths::end_evidence_of(scene.view(), scene.observed(kSigKill)).account;
    CHECK(own.source_kind() == session::AccountSource::memory_stat);
    CHECK(own.own_anonymous_bytes == 600 * kMiB);
    CHECK_FALSE(own.is_own_at_kill());
  }
}

TEST_CASE("the kernel's line about a fault tells how a process ended that nobody waited for") {
  Scene scene;
  const std::string line = "python3[4711]: segfault at 10 ip 55bb8aae2400 sp 7ffe9453a740 error 6";
  scene.log(line + "\n");
  const deaths::Ending ending = deaths::ending_of(scene.view(), {});
  CHECK(name_of(ending.verdict) == "crashed");
  CHECK(ending.outcome_text() == "signal 11");
  CHECK(ending.death().kernel_line == line);
  CHECK(ending.death().realtime_ns < system::realtime_ns() - 400'000'000);
  // Who waited knows better, and a kill comes after all.
  CHECK(deaths::ending_of(scene.view(), scene.observed(kSigKill)).outcome_text() == "signal 9");
  scene.log(line + "\n" + kill_line(4711));
  CHECK(scene.verdict() == "cgroup_oom_kill");
}

TEST_CASE("a counter is proof only if a launcher observed it") {
  Scene scene;
  scene.no_log();
  deaths::DeathObservation seen = scene.observed(kSigKill);
  CHECK(scene.verdict(seen) == "killed_near_limit");
  CHECK(scene.verdict() == "killed_near_limit");
  SUBCASE("it rose at once") {
    seen.counter_rose = true;
    CHECK(scene.verdict(seen) == "cgroup_oom_kill");
    seen.others_died = true;
    CHECK(scene.verdict(seen) == "killed_near_limit");
  }
  SUBCASE("it was alone in its cgroup") {
    seen.was_alone = true;
    CHECK(scene.verdict(seen) == "cgroup_oom_kill");
    seen.wait_status = 15;
    CHECK(scene.verdict(seen) == "terminated_under_pressure");
  }
  SUBCASE("in another cgroup than its own") {
    seen.counter_rose = seen.was_alone = true;
    seen.cgroup.directory = scene.cgroup("memory/elsewhere");
    CHECK(scene.verdict(seen) == "killed_near_limit");
  }
  SUBCASE("it did not rise") {
    seen.counter_rose = seen.was_alone = true;
    scene.header().health.cgroup_oom_kills = 1;
    CHECK(scene.verdict(seen) == "killed_near_limit");
  }
  SUBCASE("the kernel's log names another process") {
    seen.counter_rose = true;
    scene.log(kill_line(4712));
    CHECK(scene.verdict(seen) == "killed_near_limit");
  }
  SUBCASE("the kernel's log has a kill in another cgroup") {
    seen.counter_rose = true;
    scene.log(
        "oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/x,task_memcg=/x,task=y,pid=5,uid=0\n"
        "Memory cgroup out of memory: Killed process 5 (y) total-vm:1kB, anon-rss:4kB\n");
    CHECK(scene.verdict(seen) == "cgroup_oom_kill");
  }
}

TEST_CASE("without a limit on the cgroup, its counter means that the machine ran out of memory") {
  Scene scene;
  scene.no_log();
  deaths::DeathObservation seen = scene.observed(kSigKill);
  seen.counter_rose = true;
  scene.header().health.cgroup_limit_bytes = session::kUnlimited;
  CHECK(scene.verdict(seen) == "system_oom_kill");
  scene.header().health.cgroup_limit_bytes = 2000 * kMiB;
  scene.header().health.available_bytes = 100 * kMiB;  // of 16 GiB
  CHECK(scene.verdict(seen) == "system_oom_kill");
}

TEST_CASE("without a cgroup counter, the machine's counter is proof only if memory was short") {
  Scene scene;
  scene.no_log();
  std::filesystem::remove(scene.job / "memory.oom_control");
  deaths::DeathObservation seen = scene.observed(kSigKill);
  seen.counter_rose = true;
  scene.header().health.cgroup_limit_bytes = session::kUnlimited;
  CHECK(scene.verdict(seen) == "killed_externally");
  scene.header().health.available_bytes = 100 * kMiB;
  CHECK(scene.verdict(seen) == "system_oom_kill");
}

TEST_CASE("version 2, nested: the cgroup is gone and its parent counts") {
  Scene scene;
  scene.no_log();
  scene.in_cgroup("kubepods.slice/pod1/container");
  const auto parent = scene.job.parent_path();
  scene.file(parent / "memory.events", "oom 1\noom_kill 1\n");
  std::filesystem::remove_all(scene.job);
  deaths::DeathObservation seen = scene.observed(kSigKill);
  seen.counter_rose = true;
  CHECK(scene.verdict(seen) == "cgroup_oom_kill");
  CHECK((deaths::end_evidence_of(scene.view(), seen).death.flags & session::kDeathParentCgroup) !=
        0);
  // The count before is unknown.
  CHECK((deaths::end_evidence_of(scene.view(), {}).death.flags & session::kDeathCgroupCounted) ==
        0);
  // Except that it was 0 if it still is.
  scene.file(parent / "memory.events", "oom 0\noom_kill 0\n");
  CHECK((deaths::end_evidence_of(scene.view(), {}).death.flags & session::kDeathCgroupCounted) !=
        0);
}

TEST_CASE("far from every limit") {
  Scene scene;
  scene.header().health.cgroup_limit_bytes = 64'000 * kMiB;
  scene.file(scene.job / "memory.oom_control", "oom_kill 0\n");
  CHECK(scene.verdict(scene.observed(kSigKill)) == "killed_externally");
  CHECK(scene.verdict(scene.observed(15)) == "killed_externally");
  CHECK(scene.verdict(scene.observed(2)) == "killed_externally");
  CHECK(scene.verdict(scene.observed(kSigSegv)) == "crashed");
  CHECK(scene.verdict(scene.observed(6)) == "crashed");
  CHECK(scene.verdict() == "unknown");  // no wait status
  SUBCASE("without any evidence") {
    scene.header().health.time_ns = 0;
    scene.header().cgroup = 0;
    scene.no_log();
    deaths::DeathObservation seen;
    seen.wait_status = kSigKill;
    CHECK(scene.verdict(seen) == "unknown");
  }
}

TEST_CASE("a SIGTERM under pressure: whose it is, decides") {
  Scene scene;
  scene.header().health.cgroup_limit_bytes = 64'000 * kMiB;
  deaths::DeathObservation seen = scene.observed(15);
  seen.pressure = {9000, 8000};
  CHECK(scene.verdict(seen) == "killed_externally");  // others wait
  seen.levels.realtime_ns = system::realtime_ns();
  seen.levels.stalls = {1'000'000'000, 300, 0, 0, 0, 0};
  CHECK(scene.verdict(seen) == "terminated_under_pressure");
  seen.pressure = {0, 0};
  CHECK(scene.verdict(seen) == "killed_externally");  // it reads new files
  seen.levels.stalls.cgroup_refaults = 300;
  CHECK(scene.verdict(seen) == "terminated_under_pressure");
}

TEST_CASE("in a container with its own pid namespace") {
  Scene scene;
  scene.header().pid_namespace = 4026532000;
  scene.log(kill_line(31337));
  CHECK(scene.verdict() == "cgroup_oom_kill");
  CHECK((deaths::end_evidence_of(scene.view(), {}).death.flags & session::kDeathLineByName) != 0);
  scene.header().cgroup_path = 0;
  const session::Death death = deaths::end_evidence_of(scene.view(), {}).death;
  CHECK(death.kernel_line_kind == 0);
  CHECK((death.flags & session::kDeathLogRead) == 0);  // the kill may be in the log all the same
}

TEST_CASE("the machine has rebooted since") {
  Scene scene;
  scene.header().boot_id[0] ^= 1;
  scene.log(kill_line(4711));  // of this boot
  const session::Death death = deaths::end_evidence_of(scene.view(), {}).death;
  CHECK((death.flags & session::kDeathEarlierBoot) != 0);
  CHECK((death.flags & (session::kDeathCgroupCounted | session::kDeathSystemCounted)) == 0);
  CHECK(death.kernel_line_kind == 0);
  CHECK(scene.verdict() == "unknown");
}

TEST_CASE("a process that ended by itself was not killed") {
  Scene scene;
  scene.log(kill_line(4711));
  for (const session::State state : {session::State::exited, session::State::replaced}) {
    scene.header().state = static_cast<std::uint32_t>(state);
    const deaths::Ending ending = deaths::ending_of(scene.view(), {});
    CHECK_FALSE(ending.killed);
    CHECK(ending.death().realtime_ns == 0);
  }
}

TEST_CASE("a death within ten seconds of a failure follows from it") {
  Scene scene;
  const std::uint64_t now = system::monotonic_ns();
  const deaths::Ending waited = deaths::ending_of(scene.view(), scene.observed(kSigKill));
  CHECK(deaths::follows(scene.view(), waited, now - 9'000'000'000));
  CHECK_FALSE(deaths::follows(scene.view(), waited, now - 11'000'000'000));
  // The time of death is unknown: the last tick, a second ago, counts.
  const deaths::Ending found = deaths::ending_of(scene.view(), {});
  CHECK(deaths::follows(scene.view(), found, now - 10'500'000'000));
  CHECK_FALSE(deaths::follows(scene.view(), found, now - 11'500'000'000));
}

TEST_CASE("a process that was moved to another cgroup counts the kills there") {
  Scene scene;
  scene.no_log();
  scene.file(scene.job / "memory.oom_control", "oom_kill 0\n");
  const std::filesystem::path other = scene.cgroup("memory/other");
  scene.file(other / "memory.oom_control", "oom_kill 5\n");
  deaths::DeathObservation seen = scene.observed(kSigKill);
  seen.cgroup = {other, "/other"};
  seen.kills_before = 4;
  seen.counter_rose = true;
  const auto death = [&] { return deaths::end_evidence_of(scene.view(), seen).death; };
  CHECK((death().flags & session::kDeathAtOnce) == 0);  // it may be another process' cgroup
  CHECK(death().cgroup_oom_kills_after == 0);
  seen.was_there = true;
  CHECK((death().flags & session::kDeathAtOnce) != 0);
  CHECK(death().cgroup_oom_kills_before == 4);
  CHECK(death().cgroup_oom_kills_after == 5);
  CHECK(scene.verdict(seen) == "cgroup_oom_kill");
}

TEST_CASE("the kernel names another cgroup than the one in which the process was last seen") {
  Scene scene;
  scene.file(scene.job / "memory.oom_control", "oom_kill 0\n");
  const auto explain = [&] {
    const session::EndEvidence end = deaths::end_evidence_of(scene.view(), {});
    return oomrec::verdict::verdict_of(scene.view(), oomrec::Trigger::killed, 0, {}, "oom_killed",
                                       &end);
  };
  SUBCASE("whose limit can be read") {
    const std::filesystem::path other = scene.cgroup("memory/other");
    scene.file(other / "memory.limit_in_bytes", std::to_string(60 * kMiB) + "\n");
    scene.file(other / "memory.usage_in_bytes", "0\n");
    scene.log(kill_line(4711, "python3", "/other"));
    CHECK(explain().limit.bytes == 60 * kMiB);
    CHECK(explain().limit.used_bytes == 60 * kMiB);
  }
  SUBCASE("which is gone") {
    scene.log(kill_line(4711, "python3", "/gone"));
    CHECK(explain().code == VerdictCode::cgroup_oom_kill);
    CHECK(explain().limit.bytes == 0);
  }
  SUBCASE("not by its name: the one in which it was counts no kill") {
    scene.log("Memory cgroup out of memory: Killed process 4711 (python3) anon-rss:61440kB\n");
    CHECK(explain().code == VerdictCode::cgroup_oom_kill);
    CHECK(explain().limit.bytes == 0);
    scene.file(scene.job / "memory.oom_control", "oom_kill 1\n");
    CHECK(explain().limit.bytes == 700 * kMiB);
  }
}
