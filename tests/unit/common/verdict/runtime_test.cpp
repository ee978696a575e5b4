// Verdicts on processes that ended at a limit of their own runtime.
#include <doctest/doctest.h>

#include <csignal>
#include <cstring>
#include <string>

#include "common/verdict/runtimes.h"
#include "common/verdict/verdict.h"
#include "tests/unit/common/bundle/session_image.h"

using namespace oomrec;
using session::RuntimeLimit;

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
