// Verdicts of runtimes on their own end, and on children.
#include <doctest/doctest.h>

#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "common/verdict/runtimes.h"
#include "common/verdict/verdict.h"
#include "tests/unit/common/bundle/session_image.h"
#include "tests/unit/common/verdict/page.h"

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
    CHECK(session.verdict(trigger).code == VerdictCode::runtime_limit);
    show("V8's heap limit", session.verdict(trigger));
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
  for (const Certainty certainty : {Certainty::proven, Certainty::likely, Certainty::possible})
    show(("a limit of the JVM: " + std::string{name_of(certainty)}).c_str(),
         EndedRuntime{session::Runtime::jvm, certainty}.verdict(Trigger::exception));
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
  show("exit status 1 after a worker was killed by the kernel", Parent{}.verdict());
  CHECK_FALSE(verdict::is_death_caused_by_memory(VerdictCode::child_killed));
}

TEST_CASE("a parent that a signal ended names the signal") {
  Parent parent;
  EndEvidence end{};
  Death& death = end.death;
  death.realtime_ns = parent.header().start_realtime_ns + 7'250'000'000;
  death.flags = kDeathWaited;
  death.wait_status = 6;
  show("SIGABRT after a worker was killed",
       verdict::verdict_of(parent.view(), Trigger::killed, 0, {}, "signal 6", &end));
  show("an unseen end after a worker was killed",
       verdict::verdict_of(parent.view(), Trigger::killed, 0, {}, "unknown"));
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
