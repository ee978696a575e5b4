// The verdict on a parent that ended because of a worker, and which workers count.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "common/verdict/verdict.h"
#include "tests/unit/common/bundle/session_image.h"

using namespace oomrec;
using namespace oomrec::verdict;
using namespace oomrec::session;

namespace {

constexpr u64 kMiB = 1 << 20;

ChildDeath worker() {
  ChildDeath child{};
  child.pid = 4815;
  child.wait_status = 9;
  child.verdict = static_cast<u32>(VerdictCode::cgroup_oom_kill);
  child.held_bytes = 310 * kMiB;
  child.largest_bytes = 301 * kMiB;
  std::strcpy(child.where, "loader.py:17 __getitem__");
  std::strcpy(child.program, "python3.11");
  std::strcpy(child.bundle, "oom_cpu_20261121_101530_001");
  std::strcpy(child.summary, "python3.11 was killed by the kernel");
  return child;
}

// It exited with status 1, 1.5 s after it had waited for its worker.
struct Parent : TrainingSession {
  Parent() {
    header().child = worker();
    header().ended[0].pid = 4815;
    header().ended[0].time_ns = header().start_monotonic_ns + 7'000'000'000;
    header().last_tick_ns = header().start_monotonic_ns + 8'500'000'000;
  }
  verdict::Verdict verdict(Trigger trigger = Trigger::killed) const {
    return verdict::verdict_of(view(), trigger, 0, {}, "exited 1");
  }
};

}  // namespace

TEST_CASE("a parent's verdict names the worker whose death ended it") {
  const verdict::Verdict verdict = Parent{}.verdict();
  CHECK(verdict.code == VerdictCode::child_killed);
  CHECK(std::string{verdict.summary} ==
        "python3.11 ended with exit status 1 after its worker 4815 was killed by the kernel: their "
        "memory cgroup was full; it held 310.0 MiB, 301.0 MiB of it from loader.py:17 __getitem__");
  CHECK(std::vector<std::string>{verdict.evidence, verdict.evidence + verdict.evidence_count} ==
        std::vector<std::string>{
            "worker 4815: python3.11 was killed by the kernel",
            "the worker held 310.0 MiB, 301.0 MiB of it from loader.py:17 __getitem__",
            "its parent waited for it: SIGKILL, 1.5 s before its own end",
            "the worker's own bundle: oom_cpu_20261121_101530_001"});
  CHECK_FALSE(verdict::is_death_caused_by_memory(verdict.code));
}

TEST_CASE("a parent that a signal ended names the signal") {
  Parent parent;
  EndEvidence end{};
  Death& death = end.death;
  death.realtime_ns = parent.header().start_realtime_ns + 7'250'000'000;
  death.flags = kDeathWaited;
  death.wait_status = 6;
  const verdict::Verdict verdict =
      verdict::verdict_of(parent.view(), Trigger::killed, 0, {}, "signal 6", &end);
  CHECK(std::string{verdict.summary}.starts_with("python3.11 was killed by SIGABRT after"));
  CHECK(std::string{verdict.evidence[2]}.ends_with("SIGKILL, 250.0 ms before its own end"));
  const verdict::Verdict unseen =
      verdict::verdict_of(parent.view(), Trigger::killed, 0, {}, "unknown");
  CHECK(std::string{unseen.summary}.starts_with(
      "python3.11 ended, exit status unknown, after its worker 4815 was killed by the kernel"));
}

TEST_CASE("a bundle with another trigger keeps its verdict") {
  CHECK(Parent{}.verdict(Trigger::request).code == VerdictCode::requested);
  CHECK(Parent{}.verdict(Trigger::near_limit).code == VerdictCode::near_limit);
}

TEST_CASE("without a worker, an exit is not about memory") {
  Parent parent;
  parent.header().child.pid = 0;
  CHECK(parent.verdict().code == VerdictCode::exited);
  CHECK_FALSE(verdict::is_death_caused_by_memory(VerdictCode::exited));
}

TEST_CASE("a worker's death counts only if memory was its cause") {
  std::vector<std::string_view> fatal;
  for (const verdict::Kind& kind : verdict::kKinds)
    if (!kind.worker.empty()) fatal.push_back(name_of(kind.code));
  CHECK(fatal == std::vector<std::string_view>{
                     "null_dereference", "uncaught_bad_alloc", "crash_after_refusal",
                     "cgroup_oom_kill", "system_oom_kill", "killed_near_limit",
                     "terminated_under_pressure", "shared_memory_full", "runtime_limit",
                     "user_space_oom_kill", "terminated_by_parent"});
}
