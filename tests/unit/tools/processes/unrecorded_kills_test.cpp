// Which of the kernel's kills are of a run's own processes, where its log leaves out their cgroups.
#include "tools/processes/supervise/unrecorded_kills.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/system/text.h"
#include "tests/unit/tools/deaths/fake_system.h"

using namespace oomrec;
using namespace oomrec::tools;
using oomrec::tests::FakeSystem;

namespace {

constexpr pid_t kProgram = 3'000'000, kWorker = 3'000'001, kStranger = 3'000'002;

// A program with a worker, alone in a cgroup that has counted a kill.
struct Run : FakeSystem {
  Run() {
    const std::filesystem::path proc{system::g_roots.proc};
    std::filesystem::create_directories(proc / std::to_string(getpid()) / "ns");
    std::filesystem::create_symlink(std::to_string(getpid()), proc / "self");
    std::filesystem::create_symlink("pid:[4026531836]", proc / "self/ns/pid");
    process(kProgram, getpid());
    process(kWorker, kProgram);
    job = cgroup("memory/job");
    file(job / "cgroup.procs", std::to_string(kProgram) + "\n" + std::to_string(kWorker) + "\n");
    counted(1);
    descendants.started(kProgram);
    descendants.sample(job);
    program.pid = kProgram;
    program.start_realtime_ns = system::realtime_ns() - 60'000'000'000;
    system::Text{program.cgroup.named} << "/job";
    setenv("OOMREC_KERNEL_LOG", (path() + "/kmsg").c_str(), 1);
  }
  ~Run() { unsetenv("OOMREC_KERNEL_LOG"); }

  void process(pid_t pid, pid_t parent) {
    proc(std::to_string(pid) + "/stat", std::to_string(pid) + " (worker) S " +
                                            std::to_string(parent) +
                                            " 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 25600\n");
  }
  void counted(int kills) {
    file(job / "memory.oom_control", "oom_kill " + std::to_string(kills) + "\n");
  }
  // The kernel's lines without its reports, which name the cgroups.
  void killed(std::initializer_list<pid_t> pids) {
    std::string text = "6,0,0,-;Linux version\n";
    const std::string at = std::to_string(system::monotonic_ns() / 1000 - 500'000);
    for (const pid_t pid : pids)
      text += "3,1," + at + ",-;Memory cgroup out of memory: Killed process " +
              std::to_string(pid) + " (worker) total-vm:1kB, anon-rss:102400kB\n";
    file(path() + "/kmsg", text);
  }
  std::vector<pid_t> found(const std::set<pid_t>& recorded = {}) const {
    deaths::DeathObservation observed;
    observed.cgroup = {job, "/job"};
    observed.kills_before = 0;
    std::vector<pid_t> pids;
    for (const auto& kill : processes::unrecorded_kills(program, descendants, recorded, observed))
      pids.push_back(kill.facts.pid);
    return pids;
  }

  std::filesystem::path job;
  processes::Descendants descendants;
  processes::ProgramFacts program;
};

using Pids = std::vector<pid_t>;

}  // namespace

TEST_CASE("a kill without a cgroup is of this run if the run's cgroup counted one more") {
  Run run;
  run.killed({kStranger});  // it was too brief to be seen as a descendant
  CHECK(run.found() == Pids{kStranger});
  run.killed({kWorker});
  CHECK(run.found() == Pids{kWorker});
  CHECK(run.found({kWorker}).empty());
}

TEST_CASE("a kill in another cgroup is not taken for one whose process is known") {
  Run run;
  run.killed({kStranger, kWorker});  // the worker is the one that was counted
  CHECK(run.found() == Pids{kWorker});
  CHECK(run.found({kWorker}).empty());
  run.killed({kProgram, kStranger});  // or the program itself
  CHECK(run.found().empty());
  run.counted(2);
  CHECK(run.found() == Pids{kStranger});
}

TEST_CASE("of more kills than its cgroup counted none is claimed") {
  Run run;
  run.killed({kStranger, kStranger + 1});
  CHECK(run.found().empty());
  run.counted(2);
  CHECK(run.found() == Pids{kStranger, kStranger + 1});
}
