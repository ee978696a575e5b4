// A process that survives a kill in its cgroup was not the one killed.
#include "tools/deaths/death_observer.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <vector>

#include "tests/unit/tools/deaths/fake_system.h"

using namespace oomrec::tools;
using oomrec::tests::FakeSystem;

namespace {

constexpr pid_t kProgram = 999'999;
constexpr int kKilled = 9;

struct Scene : FakeSystem {
  Scene() {
    proc("self/cgroup", "4:memory:/job\n");
    file(cgroup("memory/job") / "memory.usage_in_bytes", "4096\n");
    kills(0);
    file(cgroup("memory/job") / "cgroup.procs", std::to_string(getpid()) + "\n");
  }
  void start(deaths::DeathObserver& observer, const std::string& others = {}) const {
    observer.started(kProgram);
    file(cgroup("memory/job") / "cgroup.procs",
         std::to_string(getpid()) + "\n" + std::to_string(kProgram) + "\n" + others);
  }
  void kills(int count) const {
    file(cgroup("memory/job") / "memory.oom_control", "oom_kill " + std::to_string(count) + "\n");
  }
};

}  // namespace

TEST_CASE("a kill that is counted before its process has ended") {
  const Scene scene;
  deaths::DeathObserver observer;
  scene.start(observer);
  observer.sample();
  scene.kills(1);
  SUBCASE("between two samples") {}
  SUBCASE("with a sample in between") { observer.sample(); }
  const deaths::DeathObservation seen = observer.ended(kKilled);
  CHECK(seen.was_alone);
  CHECK(seen.counter_rose);
  CHECK_FALSE(seen.others_died);
}

TEST_CASE("a kill that the program survived") {
  const Scene scene;
  deaths::DeathObserver observer;
  scene.start(observer);
  scene.kills(1);
  observer.sample();
  observer.sample();
  CHECK_FALSE(observer.ended(kKilled).was_alone);
}

TEST_CASE("another process in its cgroup") {
  const Scene scene;
  deaths::DeathObserver observer;
  scene.start(observer, "1000000\n");
  observer.sample();
  CHECK_FALSE(observer.ended(kKilled).was_alone);
}

TEST_CASE("another process that a sample finds dead") {
  constexpr pid_t kWorker = 999'998;
  const Scene scene;
  deaths::DeathObserver observer;
  scene.start(observer, "999998\n999997\n");
  observer.sample();
  SUBCASE("it alone, when the counter rises") {
    scene.kills(1);
    scene.start(observer, "999997\n");
    observer.sample();
    CHECK(observer.of_other(kWorker).counter_rose);
    CHECK_FALSE(observer.of_other(kWorker).others_died);
  }
  SUBCASE("at the sample after the one that saw the counter rise") {
    scene.kills(1);
    observer.sample();
    scene.start(observer, "999997\n");
    observer.sample();
    CHECK(observer.of_other(kWorker).counter_rose);
  }
  SUBCASE("a second after the counter rose") {
    scene.kills(1);
    observer.sample();
    observer.sample();
    scene.start(observer, "999997\n");
    observer.sample();
    CHECK_FALSE(observer.of_other(kWorker).counter_rose);
  }
  SUBCASE("with another one") {
    scene.kills(1);
    scene.start(observer);
    observer.sample();
    CHECK(observer.of_other(kWorker).others_died);
  }
  SUBCASE("beside a helper of the command, which ends as well") {
    observer.set_helper(999'997);
    observer.sample();
    observer.sample();
    scene.start(observer);
    observer.sample();
    CHECK_FALSE(observer.of_other(kWorker).others_died);
  }
}

// It is moved to another cgroup.
struct MovedScene : Scene {
  void in_other(int kills) const {
    const std::filesystem::path other = cgroup("memory/other");
    file(other / "cgroup.procs", std::to_string(kProgram) + "\n");
    file(other / "memory.usage_in_bytes", "100000000\n");
    file(other / "memory.limit_in_bytes", "104857600\n");
    file(other / "memory.oom_control", "oom_kill " + std::to_string(kills) + "\n");
    proc("999999/cgroup", "4:memory:/other\n");
    proc("999999/statm", "30000 20000 500 10 0 20000 0\n");
  }
};

TEST_CASE("a program that is moved to another cgroup") {
  const MovedScene scene;
  deaths::DeathObserver observer;
  scene.start(observer, "1000000\n");
  observer.sample();
  scene.in_other(3);
  observer.sample();
  scene.in_other(4);
  // Version 1 says of a zombie that it is in the root.
  scene.proc("999999/cgroup", "4:memory:/\n");
  scene.proc("999999/statm", "0 0 0 0 0 0 0\n");
  SUBCASE("it has ended") {}
  SUBCASE("a sample finds it ended") { observer.sample(); }
  const deaths::DeathObservation seen = observer.ended(kKilled);
  CHECK(seen.was_there);
  CHECK(seen.cgroup.path == "/other");
  CHECK(seen.kills_before == 3);
  CHECK(seen.counter_rose);
  CHECK(seen.was_alone);
  CHECK(seen.levels.cgroup_limit_bytes == 104857600);
}

TEST_CASE("a program that may have been dying when its new cgroup was read first") {
  const MovedScene scene;
  deaths::DeathObserver observer;
  scene.start(observer);
  scene.in_other(3);
  observer.sample();
  SUBCASE("no later sample found it there") { CHECK_FALSE(observer.ended(kKilled).kills_before); }
  SUBCASE("a later one did") {
    observer.sample();
    CHECK(observer.ended(kKilled).kills_before == 3);
  }
}

TEST_CASE("a child's peak is its own only above what its parent had") {
  rusage ours{};
  REQUIRE(getrusage(RUSAGE_SELF, &ours) == 0);
  const auto peak_of = [&](long kib) {
    rusage used{};
    used.ru_maxrss = kib;
    return deaths::LevelSampler{}.at_end(&used).resident_peak_bytes;
  };
  CHECK(peak_of(ours.ru_maxrss / 2) == 0);
  CHECK(peak_of(ours.ru_maxrss * 2) == static_cast<std::uint64_t>(ours.ru_maxrss) * 2 * 1024);
}

// wait4() says the highest of the process and of all descendants that have been waited for.
TEST_CASE("the peak of a process is not that of a child that it has waited for") {
  constexpr std::size_t kBytes = 200 << 20;
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t process = fork();
  if (process == 0) {
    const pid_t child = fork();
    if (child == 0) {
      std::vector<char> held(kBytes);
      std::memset(held.data(), 1, held.size());
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    if (write(ready[1], "", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  deaths::LevelSampler sampler;
  sampler.sample(process);
  kill(process, SIGKILL);
  int status = 0;
  rusage used{};
  REQUIRE(wait4(process, &status, 0, &used) == process);
  const std::uint64_t peak = sampler.at_end(&used).resident_peak_bytes;
  CHECK(peak > 0);
  CHECK(peak + kBytes / 2 < static_cast<std::uint64_t>(used.ru_maxrss) * 1024);
  close(ready[0]);
  close(ready[1]);
}
