// Verdicts of runtimes on their own end, and on children.
#include <doctest/doctest.h>

#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "common/verdict/runtimes.h"
#include "common/verdict/verdict.h"
#include "tests/unit/common/bundle/session_image.h"

using namespace oomrec::session;
using namespace oomrec::verdict;
using namespace oomrec;
using session::RuntimeLimit;

// --- Verdicts on processes that ended at a limit of their own runtime

namespace {

struct EndedRuntime : session::TrainingSession {
  explicit EndedRuntime(session::Runtime runtime, Certainty certainty = Certainty::proven) {
    RuntimeLimit& limit = header().runtime_limit;
    limit.certainty = static_cast<std::uint32_t>(certainty);
    std::strcpy(limit.evidence, "V8::FatalProcessOutOfMemory is on the stack of its abort");
    limit.runtime = static_cast<std::uint32_t>(runtime);
    header().executable = string("/usr/bin/node");
  }
  verdict::Verdict verdict(Trigger trigger, std::uint32_t refused = 0) const {
    return verdict::verdict_of(view(), trigger, refused, {}, "signal 6");
  }
};

}  // namespace

TEST_CASE("a runtime's limit is named with the option that raises it") {
  const EndedRuntime session{session::Runtime::v8};
  for (const Trigger trigger : {Trigger::crash, Trigger::exception, Trigger::killed}) {
    const verdict::Verdict verdict = session.verdict(trigger);
    CHECK(verdict.code == VerdictCode::runtime_limit);
    CHECK(verdict.certainty == Certainty::proven);
    CHECK(std::string{verdict.summary} ==
          "node reached V8's heap limit (--max-old-space-size); no request was refused");
    REQUIRE(verdict.evidence_count >= 1);
    CHECK(std::string{verdict.evidence[0]} ==
          "V8::FatalProcessOutOfMemory is on the stack of its abort");
  }
}

TEST_CASE("the signal of the abort does not outrank the limit") {
  EndedRuntime session{session::Runtime::v8};
  session.header().crash.signal = SIGABRT;
  CHECK(session.verdict(Trigger::crash).code == VerdictCode::runtime_limit);
  session.header().runtime_limit.runtime = 0;
  CHECK(session.verdict(Trigger::crash).code == VerdictCode::crashed);
}

TEST_CASE("the words follow the certainty") {
  const auto summary = [](Certainty certainty) {
    const EndedRuntime session{session::Runtime::jvm, certainty};
    return std::string{session.verdict(Trigger::exception).summary};
  };
  CHECK(summary(Certainty::proven).find("node reached a memory limit of the JVM (-Xmx") == 0);
  CHECK(summary(Certainty::likely).find("node probably reached a memory limit of the JVM") == 0);
  const std::string possible = summary(Certainty::possible);
  CHECK(possible.find("node possibly reached a memory limit of the JVM") == 0);
  CHECK(possible.find("nothing excludes it") != std::string::npos);
}

TEST_CASE("other evidence goes first") {
  SUBCASE("a request that was refused") {
    EndedRuntime session{session::Runtime::v8};
    std::uint32_t refused = 0;
    session.add<session::Failure>(session::TableId::failures, &refused).bytes = 1 << 20;
    CHECK(session.verdict(Trigger::allocation_failed, refused).code != VerdictCode::runtime_limit);
  }
  SUBCASE("a bundle that the program asked for") {
    const EndedRuntime session{session::Runtime::v8};
    CHECK(session.verdict(Trigger::request).code == VerdictCode::requested);
  }
  SUBCASE("a runtime of a newer version") {
    const EndedRuntime session{static_cast<session::Runtime>(99)};
    CHECK(session.verdict(Trigger::exception).code == VerdictCode::exception);
  }
}

TEST_CASE("only functions that give up for lack of memory are the runtime's limit") {
  CHECK(verdict::limit_function(
            "_ZN2v88internal2V823FatalProcessOutOfMemoryEPNS0_7IsolateEPKcRKNS_10OOMDetailsE") !=
        nullptr);
  CHECK(verdict::limit_function("_ZN4node15OOMErrorHandlerEPKcRKN2v810OOMDetailsE") != nullptr);
  CHECK(verdict::limit_function("_Z25report_java_out_of_memoryPKc") != nullptr);
  for (const char* other : {"_ZN4node5AbortEv", "_ZN2v88internal8FatalOOMEv", "abort", "",
                            "_ZN2os4exitEi", "_Z23report_vm_out_of_memoryPKcim11VMErrorTypeS0_z"})
    CHECK_MESSAGE(verdict::limit_function(other) == nullptr, other);
}

// --- The verdict on a parent that ended because of a worker, and which workers count

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
