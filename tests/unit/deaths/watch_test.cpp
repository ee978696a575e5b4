// Who runs on after a kill in its cgroup was not the one killed; who ends was.
#include "tools/deaths/watch.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include "tests/unit/deaths/fake_system.h"

using namespace oomrec::tools;
using oomrec::tests::FakeSystem;

namespace {

constexpr pid_t kProgram = 999'999;
constexpr int kKilled = 9;

struct Scene : FakeSystem {
  Scene() {
    proc("self/cgroup", "4:memory:/job\n");
    kills(0);
    file(cgroup("memory/job") / "cgroup.procs", std::to_string(getpid()) + "\n");
  }
  void start(deaths::Watch& watch, const std::string& others = {}) const {
    watch.started(kProgram);
    file(cgroup("memory/job") / "cgroup.procs",
         std::to_string(getpid()) + "\n" + std::to_string(kProgram) + "\n" + others);
  }
  void kills(int count) const {
    file(cgroup("memory/job") / "memory.oom_control", "oom_kill " + std::to_string(count) + "\n");
  }
};

}  // namespace

TEST_CASE("a kill that is counted while its process still ends") {
  const Scene scene;
  deaths::Watch watch;
  scene.start(watch);
  watch.look();
  scene.kills(1);
  SUBCASE("between two looks") {}
  SUBCASE("and a look falls between") { watch.look(); }
  const deaths::Watched seen = watch.ended(kKilled);
  CHECK(seen.alone);
  CHECK(seen.at_once);
  CHECK_FALSE(seen.others);
}

TEST_CASE("a kill that it outlived") {
  const Scene scene;
  deaths::Watch watch;
  scene.start(watch);
  scene.kills(1);
  watch.look();
  watch.look();
  CHECK_FALSE(watch.ended(kKilled).alone);
}

TEST_CASE("another in its cgroup") {
  const Scene scene;
  deaths::Watch watch;
  scene.start(watch, "1000000\n");
  watch.look();
  CHECK_FALSE(watch.ended(kKilled).alone);
}
