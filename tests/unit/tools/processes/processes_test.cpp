// What a launcher says of a program's end, and options without effect.
#include "tools/processes/supervise/death_line.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/system/text.h"
#include "tests/unit/tools/deaths/fake_system.h"
#include "tools/processes/launch/recorded.h"
#include "tools/processes/supervise/unrecorded_kills.h"

using namespace oomrec::tools;
using namespace oomrec;
using oomrec::Options;
using oomrec::tests::FakeSystem;
using oomrec::tools::processes::end_of_process;
using oomrec::tools::processes::options_without_effect;

// --- The line that `oomrec run` prints about a process' end

TEST_CASE("the first clause of the summary, with the pid after the program's name") {
  CHECK(
      end_of_process("python3.11 was killed by the kernel: its memory cgroup had reached its limit "
                     "of 64.0 MiB; it held 62.1 MiB; no refused request is on record",
                     "python3.11", 4711) ==
      "python3.11 (pid 4711) was killed by the kernel: its memory cgroup had reached its limit of "
      "64.0 MiB");
}

TEST_CASE("a summary that does not begin with the program") {
  CHECK(end_of_process("the process was killed by SIGKILL; it held 1.0 MiB", "", 7) ==
        "pid 7: the process was killed by SIGKILL");
  CHECK(end_of_process("another was killed", "server", 7) == "pid 7: another was killed");
}

TEST_CASE("control characters of a program's name do not reach the terminal") {
  const std::string line = end_of_process("a\x1b[2Jb was killed", "a\x1b[2Jb", 7);
  CHECK(line.find('\x1b') == std::string::npos);
}

// --- Which of the kernel's kills are of a run's own processes, where its log leaves out their
// cgroups

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

// --- What `oomrec run` says about options that have no effect on a program without the recorder

TEST_CASE("nothing is said about options that `run` itself applies") {
  Options options;
  options.limit_as = 1 << 30;
  options.max_dumps = 3;
  options.on_oom_exec = "true";
  options.quiet = true;
  CHECK(options_without_effect(options).empty());
}

TEST_CASE("a limit names what bounds such a program") {
  Options options;
  options.limit = std::uint64_t{512} << 20;
  CHECK(options_without_effect(options) ==
        "--limit has no effect on it; to bound its memory, use --cgroup 512M or --limit-as 512M");
  options.limit = (std::uint64_t{1} << 30) + 512;
  CHECK(options_without_effect(options).ends_with("--limit-as 1073742336"));
  options.limit = std::uint64_t{1536} << 20;
  CHECK(options_without_effect(options).ends_with("--limit-as 1536M"));
}

TEST_CASE("each of the others is named") {
  Options options;
  options.limit_gpu = "1G";
  options.fail = "malloc:nth=1";
  options.dump_at_exit = true;
  options.on_oom = {oomrec::OnOom::abort, 0};
  options.set_named(oomrec::OptionId::warn);
  CHECK(options_without_effect(options) ==
        "--fail, --limit-gpu, --warn, --dump-at-exit, --on-oom have no effect on it");
  options.limit_reserve = 0;  // nothing
  options.set_named(oomrec::OptionId::limit_reserve);
  options.warn = 0;  // never
  CHECK(options_without_effect(options).find("--warn") == std::string::npos);
  CHECK(options_without_effect(options).find("--limit-reserve") == std::string::npos);
  options.limit_reserve = 1 << 20;
  CHECK(options_without_effect(options).starts_with("--limit-reserve, --fail, "));
}
