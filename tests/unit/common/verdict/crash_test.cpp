// Verdicts on crashes from hand-made evidence: when a crash follows from a failed allocation, and
// when it is not about memory.
#include <doctest/doctest.h>

#include <csignal>
#include <string>

#include "common/text/text.h"
#include "common/verdict/verdict.h"
#include "recorder/helper/crash_names.h"
#include "tests/unit/common/bundle/session_image.h"

using namespace oomrec;
using namespace oomrec::verdict;
using session::Crash;
using session::Failure;
using session::TableId;

namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kSecond = 1000 * kMs;

// The training loop's failed request, and a NULL that it used 0.2 ms later.
struct CrashedSession : session::TrainingSession {
  CrashedSession() {
    refusal = &add<Failure>(TableId::failures, &refused);
    view().read(TableId::failures, failure, *refusal);
    Crash& c = crash();
    c.signal = SIGSEGV;
    c.code = 1;  // SEGV_MAPERR
    c.address = 0x10;
    c.thread = thread;
    c.failure = refused;
    c.failure_bytes = refusal->bytes;
    c.failure_time_ns = refusal->time_ns;
    c.time_ns = refusal->time_ns + kMs / 5;
  }
  Crash& crash() { return header().crash; }
  verdict::Verdict verdict(Trigger trigger = Trigger::crash) const {
    return verdict::verdict_of(view(), trigger, refused, {}, "signal 11");
  }
  std::string summary() const { return verdict().summary; }
  bool has(std::string_view line) const {
    const verdict::Verdict found = verdict();
    for (unsigned i = 0; i < found.evidence_count; ++i)
      if (std::string_view{found.evidence[i]}.find(line) != std::string_view::npos) return true;
    return false;
  }
  std::uint32_t refused = 0;
  Failure* refusal = nullptr;
};

void abort_by_itself(CrashedSession& session) {
  Crash& crash = session.crash();
  crash.signal = SIGABRT;
  crash.code = SI_TKILL;
  crash.address = 0;
  crash.sender_pid = session.header().pid;
}

}  // namespace

TEST_CASE("a null dereference names the failed request and its reason") {
  CrashedSession session;
  const verdict::Verdict verdict = session.verdict();
  CHECK(verdict.code == VerdictCode::null_dereference);
  CHECK(std::string{verdict.summary} ==
        "SIGSEGV at address 0x10, 0.2 ms after malloc refused 412.0 MiB: the program used the NULL "
        "it was given");
  CHECK(verdict.limit == LimitKind::soft);
  CHECK(session.has("in thread 4711 \"python3\" malloc refused 412.0 MiB 0.2 ms before"));
  CHECK(session.has("numpy asked malloc for 412.0 MiB and was refused: the soft limit of 1.0 GiB"));
  CHECK(session.has("live 987.3 MiB + request 412.0 MiB > the soft limit 1.0 GiB"));

  SUBCASE("the latest repeat counts, not the first failure") {
    session.crash().failure_bytes = 4096;
    CHECK(session.summary().find("malloc refused 4.0 KiB") != std::string::npos);
  }
}

TEST_CASE("an address counts as NULL plus an offset within the request, up to 1 GiB") {
  CrashedSession session;
  std::uint64_t bytes = 0, address = 0;
  bool is_null = false;
  SUBCASE("its last byte") { bytes = 101, address = 100, is_null = true; }
  SUBCASE("one byte beyond") { bytes = 101, address = 101; }
  SUBCASE("a size that overflows") { bytes = ~std::uint64_t{0}, address = 8, is_null = true; }
  SUBCASE("far inside a large request") {
    bytes = ~std::uint64_t{0}, address = std::uint64_t{1} << 30;
  }
  session.crash().failure_bytes = bytes;
  session.crash().address = address;
  CHECK(session.verdict().code ==
        (is_null ? VerdictCode::null_dereference : VerdictCode::crash_after_refusal));
}

TEST_CASE("some time after a failure a NULL may be another") {
  CrashedSession session;
  session.crash().failure_time_ns = session.crash().time_ns - 1'000'000'001;
  CHECK(session.verdict().code == VerdictCode::null_dereference);
  CHECK(session.summary().ends_with("the program may have used the NULL it was given"));
}

TEST_CASE("MAP_FAILED counts as an address, too") {
  CrashedSession session;
  session.refusal->api = static_cast<std::uint16_t>(Api::mmap);
  session.crash().address = ~std::uint64_t{0};
  CHECK(session.summary().ends_with("the program used the MAP_FAILED it was given"));
  session.refusal->api = static_cast<std::uint16_t>(Api::malloc);
  CHECK(session.verdict().code == VerdictCode::crash_after_refusal);
}

TEST_CASE("without a fault address nothing is compared") {
  CrashedSession session;
  session.crash().address = 0;
  SUBCASE("a wild pointer") { session.crash().code = 0x80; }
  SUBCASE("a signal that was sent") { session.crash().code = SI_USER; }
  CHECK(session.verdict().code == VerdictCode::crash_after_refusal);
  CHECK(session.summary().starts_with("SIGSEGV, 0.2 ms after"));
}

TEST_CASE(
    "an abort is an uncaught bad_alloc when operator new was refused and std::terminate ran") {
  CrashedSession session;
  abort_by_itself(session);
  CHECK(session.verdict().code == VerdictCode::crash_after_refusal);
  CHECK(session.summary().ends_with("the program gave up"));
  session.crash().flags = session::kCrashTerminate;
  CHECK(session.verdict().code == VerdictCode::crash_after_refusal);
  CHECK(session.summary().ends_with("an exception was not caught"));
  session.crash().flags = session::kCrashNew;
  CHECK(session.verdict().code == VerdictCode::crash_after_refusal);
  session.crash().flags = session::kCrashNew | session::kCrashTerminate;
  CHECK(session.verdict().code == VerdictCode::uncaught_bad_alloc);
  session.crash().flags |= session::kCrashOtherThrow;
  CHECK(session.verdict().code == VerdictCode::crash_after_refusal);
  CHECK(session.summary().ends_with("another exception was not caught"));
}

TEST_CASE("a stack overflow is named as such") {
  CrashedSession session;
  session.crash().address = 0x7ffd'6936'dfb0;
  session.crash().flags = session::kCrashGuardPage;
  CHECK(session.verdict().code == VerdictCode::crash_after_refusal);
  CHECK(session.has("beyond the end of the thread's stack"));
}

TEST_CASE("a crash without a preceding failure is not about memory, and says why") {
  CrashedSession session;
  Crash& crash = session.crash();
  std::string why;
  SUBCASE("no failure") {
    crash.failure = 0;
    crash.failure_bytes = crash.failure_time_ns = 0;
    why = "nothing was refused to its thread";
  }
  SUBCASE("too long ago") {
    crash.time_ns = crash.failure_time_ns + 10 * kSecond + 100 * kMs;
    why = "the thread's last refusal was 10.1 s before";
  }
  SUBCASE("succeeded since") {
    crash.flags = session::kCrashSucceededSince;
    why = "the refused call has succeeded since";
  }
  SUBCASE("sent by another process") {
    crash.code = SI_USER;
    crash.sender_pid = 4712;
    why = "process 4712 sent the signal";
  }
  SUBCASE("a forged failure") {
    crash.failure = 999;
    why = "nothing was refused to its thread";
  }
  CHECK(session.verdict().code == VerdictCode::crashed);
  CHECK(session.verdict(Trigger::killed).code == VerdictCode::crashed);
  CHECK(session.summary().starts_with("python3.11 was ended by SIGSEGV"));
  CHECK(session.summary().ends_with(", not for lack of memory: " + why));
  if (crash.failure != 999) {
    CHECK_FALSE(verdict::follows_failure(session.header()));
    // A bundle written for a failed request keeps its verdict.
    CHECK(session.verdict(Trigger::soft_limit).code == VerdictCode::soft_limit);
  }
}

TEST_CASE("a crash follows from a failure at most 10 s before") {
  CrashedSession session;
  session.crash().time_ns = session.crash().failure_time_ns + 10 * kSecond;
  CHECK(session.summary().starts_with("SIGSEGV at address 0x10, 10.0 s after"));
  session.crash().time_ns += 1;
  CHECK(session.verdict().code == VerdictCode::crashed);
  session.crash().time_ns = session.crash().failure_time_ns - 1;  // forged
  CHECK(session.verdict().code == VerdictCode::crashed);
}

TEST_CASE("a crash explains the bundle of its own failure, no other and no requested one") {
  CrashedSession session;
  CHECK(session.verdict(Trigger::soft_limit).code == VerdictCode::null_dereference);
  CHECK(verdict::verdict_of(session.view(), Trigger::soft_limit, session.failure).code ==
        VerdictCode::soft_limit);
  CHECK(session.verdict(Trigger::request).code == VerdictCode::requested);
  session.crash().signal = 0;  // the handler did not get this far
  CHECK(session.verdict(Trigger::soft_limit).code == VerdictCode::soft_limit);
}

namespace {

bool name_by_offset(InHook, std::uint64_t start, std::uint64_t pc, char* name,
                    std::size_t capacity) noexcept {
  constexpr std::string_view kNames[] = {"abort", "_ZSt9terminatev", "_Znwm", "main",
                                         "__cxa_throw"};
  const std::uint64_t at = (pc - start) / 16;
  if (at >= std::size(kNames)) return false;
  text::Text{name, capacity}.add(kNames[at]);
  return true;
}

std::uint64_t frame_of(const CrashedSession& session, std::uint64_t name) {
  return session::native_frame(session.libc, name * 16 + 1);
}

std::uint32_t flags_of(CrashedSession& session) {
  return helper::flags_by_name(OutsideHooks::in_hook(), session.view(), session.crash(),
                               name_by_offset);
}

}  // namespace

TEST_CASE("names set flags: where the uncaught exception came from") {
  CrashedSession session;
  const auto frame = [&](std::uint64_t name) { return frame_of(session, name); };
  const std::uint64_t caller = session::native_frame(session.libc, 0x7777);
  session.refusal->node = session.stack({frame(3), caller, frame(2), frame(2)});  // outermost first
  Crash& crash = session.crash();
  crash.frame_count = session::kCrashFrames;
  for (auto& word : crash.frames) word = frame(3);
  constexpr std::uint32_t kUncaught = session::kCrashNew | session::kCrashTerminate;
  constexpr std::uint32_t kAnother = kUncaught | session::kCrashOtherThrow;
  crash.frames[1] = frame(4);
  CHECK(flags_of(session) == kAnother);
  crash.frames[0] = frame(1);
  CHECK(flags_of(session) == kAnother);
  crash.frames[5] = caller;
  CHECK(flags_of(session) == kUncaught);
  crash.frame_count = 5;
  CHECK(flags_of(session) == kAnother);
  crash.frame_count = session::kCrashFrames;
  crash.frames[5] = frame(3);
  crash.frames[6] = caller;  // too far out: it called the function that threw
  CHECK(flags_of(session) == kAnother);
  crash.frames[1] = frame(3);  // rethrown
  CHECK(flags_of(session) == kUncaught);
}

TEST_CASE("names set flags: std::terminate on the crash's stack, operator new on the failure's") {
  CrashedSession session;
  const auto frame = [&](std::uint64_t name) { return frame_of(session, name); };
  const auto flags = [&] { return flags_of(session); };
  CHECK(flags() == 0);

  Crash& crash = session.crash();
  crash.frame_count = session::kCrashFrames;
  for (auto& word : crash.frames) word = frame(3);
  CHECK(flags() == 0);
  crash.frames[15] = frame(1);
  CHECK(flags() == session::kCrashTerminate);
  crash.frames[15] = frame(3);
  crash.frames[16] = frame(1);  // too far out
  crash.frame_count = 9999;     // forged
  CHECK(flags() == 0);

  session.refusal->node = session.stack({frame(3), frame(2), frame(0)});
  CHECK(flags() == session::kCrashNew);
  session.refusal->node = session.stack({frame(2), frame(3), frame(3), frame(3), frame(3)});
  CHECK(flags() == 0);
  session.refusal->api = static_cast<std::uint16_t>(Api::operator_new);
  CHECK(flags() == session::kCrashNew);
  crash.failure = 999;
  CHECK(flags() == 0);
}
