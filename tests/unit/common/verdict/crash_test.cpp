// Verdicts on crashes from hand-made evidence: when a crash follows from a failed allocation, and
// when it is not about memory.
#include <doctest/doctest.h>

#include <csignal>
#include <cstring>
#include <string>
#include <utility>

#include "common/text/text.h"
#include "common/verdict/verdict.h"
#include "recorder/helper/crash_names.h"
#include "tests/unit/common/bundle/session_image.h"

using namespace oomrec;
using namespace oomrec::verdict;
using enum Certainty;
using enum VerdictCode;
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
    link().flags = session::kLinkKnown | session::kLinkDerived;
  }
  session::CrashLink& link() { return header().crash_link; }
  Crash& crash() { return header().crash; }
  verdict::Verdict verdict(Trigger trigger = Trigger::crash) const {
    return verdict::verdict_of(view(), trigger, refused, {}, "signal 11");
  }
  std::pair<VerdictCode, Certainty> judged() const {
    const verdict::Verdict found = verdict();
    return {found.code, found.certainty};
  }
  // With these flags of the link, so many requests after the failure.
  std::pair<VerdictCode, Certainty> judged(std::uint32_t flags, std::uint64_t served) {
    link().flags = session::kLinkKnown | flags;
    link().served_since = served;
    return judged();
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
  session.link().flags = session::kLinkKnown;
}

}  // namespace

TEST_CASE("a null dereference names the failed request and its reason") {
  CrashedSession session;
  const verdict::Verdict verdict = session.verdict();
  CHECK(verdict.code == null_dereference);
  CHECK(std::string{verdict.summary} ==
        "SIGSEGV at address 0x10, 0.2 ms after malloc refused 412.0 MiB: the program used the NULL "
        "it was given");
  CHECK(verdict.limit.kind == LimitKind::soft);
  CHECK(session.has("in thread 4711 \"python3\" malloc refused 412.0 MiB 0.2 ms before"));
  CHECK(session.has("numpy asked malloc for 412.0 MiB and was refused: the soft limit of 1.0 GiB"));
  CHECK(session.has("live 987.3 MiB + request 412.0 MiB > the soft limit 1.0 GiB"));

  SUBCASE("the latest repeat counts, not the first failure") {
    session.crash().failure_bytes = 4096;
    CHECK(session.summary().find("malloc refused 4.0 KiB") != std::string::npos);
  }
}

TEST_CASE("how certain a null dereference is") {
  constexpr std::uint64_t kNear = 0x10, kFar = 1 << 20;
  const std::string used = "the program used the NULL it was given";
  const std::string passed_on = "the program passed on the NULL it was given";
  const std::string probably = "the program probably used the NULL it was given";
  const std::string perhaps =
      "the program may have used the NULL it was given; nothing excludes it";
  const struct {
    const char* how;
    std::uint32_t flags;
    std::uint64_t served, address;
    Certainty certainty;
    const std::string& end;
    std::uint64_t later_s = 0;
  } rows[] = {
      {"computed from the result", session::kLinkDerived | session::kLinkChecked, 8, kNear, proven,
       used},
      {"computed from what a variable held much later", session::kLinkDerived, 900, kNear, likely,
       used},
      {"passed to the function that crashed", session::kLinkArgument, 0, kNear, likely, passed_on},
      {"an offset into the block there", session::kLinkArgument, 0, kFar, proven, passed_on},
      {"kept without a check, soon used", session::kLinkUnchecked, 3, kNear, likely, probably},
      {"kept without a check, used much later", session::kLinkUnchecked | session::kLinkKept, 812,
       kNear, possible, perhaps, 12},
      {"an index far into the block, much later", session::kLinkUnchecked | session::kLinkKept, 812,
       kFar, likely, probably},
      {"checked, but stored", session::kLinkChecked | session::kLinkKept, 2, kNear, possible,
       perhaps},
      {"nothing is known about the code", 0, 2, kNear, possible, perhaps},
      {"nothing is known about it, nothing happened since", 0, 0, kNear, likely, probably},
      {"nothing happened for 12 s", 0, 0, kNear, possible, perhaps, 12},
      {"unchecked, in another thread", session::kLinkUnchecked | session::kLinkOtherThread, 0,
       kNear, possible, perhaps},
      {"in the path that deals with the failure", session::kLinkChecked | session::kLinkOnFailure,
       2, kNear, likely, probably},
  };
  for (const auto& row : rows) {
    CAPTURE(row.how);
    CrashedSession session;
    session.crash().address = row.address;
    session.crash().time_ns += row.later_s * kSecond;
    CHECK(session.judged(row.flags, row.served) == std::pair{null_dereference, row.certainty});
    CHECK(session.summary().ends_with(": " + row.end));
    CHECK(session.has(" other allocations in between"));
    CHECK(verdict::follows_failure(session.view()));
  }
}

TEST_CASE("an address counts as NULL plus an offset within the request") {
  constexpr std::uint64_t kOverflows = ~std::uint64_t{0}, kFarInside = std::uint64_t{1} << 30;
  const struct {
    std::uint64_t bytes, address;
    std::uint32_t flags;
    VerdictCode code;
  } rows[] = {
      {101, 100, session::kLinkUnchecked, null_dereference},  // its last byte
      {101, 101, session::kLinkUnchecked, crashed},
      {kOverflows, 8, session::kLinkUnchecked, null_dereference},
      {kOverflows, kFarInside, session::kLinkUnchecked, crashed},
      {kOverflows, kFarInside, session::kLinkDerived, null_dereference},
  };
  for (const auto& row : rows) {
    CAPTURE(row.address);
    CrashedSession session;
    session.link().flags = session::kLinkKnown | row.flags;
    session.crash().failure_bytes = row.bytes;
    session.crash().address = row.address;
    CHECK(session.verdict().code == row.code);
  }
}

TEST_CASE("what lies before a NULL") {
  CrashedSession session;
  session.crash().address = 0 - std::uint64_t{16};
  CHECK(session.judged() == std::pair{null_dereference, proven});
  session.link().flags = session::kLinkKnown | session::kLinkUnchecked;  // not computed from it
  CHECK(session.verdict().code == crashed);
}

TEST_CASE("a division by a size that became 0, and an old block that was overrun") {
  CrashedSession session;
  session.link().flags = session::kLinkKnown | session::kLinkChecked | session::kLinkOldBlock;
  session.crash().address = 0x5555'5555'6000;
  CHECK(session.verdict().code == crash_after_refusal);
  CHECK(session.summary().ends_with("the program went on as if the block had grown"));
  abort_by_itself(session);
  session.crash().signal = SIGFPE;
  session.crash().code = FPE_INTDIV;
  session.link().flags = session::kLinkKnown | session::kLinkRegardless | session::kLinkDerived;
  CHECK(session.verdict().code == crash_after_refusal);
  CHECK(session.summary().starts_with("SIGFPE, 0.2 ms after"));
  CHECK(session.summary().ends_with("the program divided by a size that had become 0"));
  session.link().flags &= ~session::kLinkDerived;
  CHECK(session.verdict().code == crashed);
}

TEST_CASE("a pointer that the failed call has not set") {
  CrashedSession session;
  session.crash().address = std::uint64_t{1} << 45;
  CHECK(session.judged() == std::pair{crash_after_refusal, likely});
  CHECK(session.summary().ends_with("the program used a pointer that was not set because of that"));
  session.link().served_since = 9;
  CHECK(session.verdict().certainty == possible);
  abort_by_itself(session);
  const std::uint32_t damage = session::kLinkKnown | session::kLinkHeapCorruption;
  session.link().flags = damage | session::kLinkArgument;
  session.link().served_since = 0;
  CHECK(session.judged() == std::pair{crash_after_refusal, likely});
  session.link().flags = damage;
  CHECK(session.verdict().code == crashed);
}

TEST_CASE("many requests prove nothing while the failed call's caller is still running") {
  CrashedSession session;
  abort_by_itself(session);
  session.link().served_since = 96'000;
  session.link().failure_frames = session.link().common_frames = 5;
  CHECK(session.judged() == std::pair{crashed, possible});
  session.link().common_frames = 4;
  CHECK(session.verdict().certainty == likely);
}

TEST_CASE("MAP_FAILED counts as an address, too") {
  CrashedSession session;
  session.refusal->api = static_cast<std::uint16_t>(Api::mmap);
  session.crash().address = ~std::uint64_t{0};
  CHECK(session.summary().ends_with("the program used the MAP_FAILED it was given"));
  session.refusal->api = static_cast<std::uint16_t>(Api::malloc);
  session.link().flags = session::kLinkKnown | session::kLinkUnchecked;
  CHECK(session.verdict().code == crashed);
}

TEST_CASE("a compared error says nothing about the block that it left unset") {
  CrashedSession session;
  session.link().flags = session::kLinkKnown | session::kLinkChecked | session::kLinkRegardless;
  session.link().served_since = 0;
  CHECK(session.verdict().code == crashed);
  session.refusal->api = static_cast<std::uint16_t>(Api::posix_memalign);
  CHECK(session.judged() == std::pair{null_dereference, possible});
  session.link().served_since = 1;  // it went on
  CHECK(session.verdict().code == crashed);
}

TEST_CASE("without a fault address nothing is compared") {
  CrashedSession session;
  session.link().flags = session::kLinkKnown | session::kLinkUnchecked;
  session.crash().address = 0;
  session.crash().code = 0x80;  // a wild pointer
  CHECK(session.verdict().code == crashed);
  CHECK(session.summary().ends_with("its result does not lead to such an address"));
}

TEST_CASE("an exception that nobody caught: by its type and where it was thrown") {
  CrashedSession session;
  abort_by_itself(session);
  session.crash().flags = session::kCrashTerminate;
  const auto in_flight = [&](const char* type) {
    std::strcpy(session.link().exception,
                type);  // NOLINT(clang-analyzer-security.insecureAPI.strcpy)
  };
  SUBCASE("the std::bad_alloc of the failed request") {
    in_flight("St9bad_alloc");
    session.link().flags |= session::kLinkBadAlloc;
    session.crash().flags |= session::kCrashNew;
    CHECK(session.judged() == std::pair{uncaught_bad_alloc, proven});
    CHECK(session.summary().ends_with("nobody caught the std::bad_alloc"));
    session.crash().flags |= session::kCrashOtherThrow;  // another one
    CHECK(session.judged() == std::pair{uncaught_bad_alloc, likely});
  }
  SUBCASE("another, thrown while that one was being handled") {
    in_flight("St13runtime_error");
    session.link().flags |= session::kLinkHandling;
    CHECK(session.judged() == std::pair{crash_after_refusal, likely});
    CHECK(session.summary().ends_with("another exception was not caught"));
    CHECK(session.has("a std::bad_alloc was being handled"));
  }
  SUBCASE("another, thrown only if the call fails") {
    in_flight("St13runtime_error");
    session.link().flags |= session::kLinkChecked | session::kLinkOnFailure;
    CHECK(session.verdict().code == crash_after_refusal);
    CHECK(session.summary().ends_with("another exception was not caught"));
    CHECK(session.has("std::terminate is on the stack"));
  }
  SUBCASE("another, after the std::bad_alloc was caught") {
    in_flight("St11logic_error");
    session.crash().flags |= session::kCrashNew | session::kCrashOtherThrow;
    CHECK(session.verdict().code == crashed);
    CHECK(session.summary().ends_with("does not explain it: another exception was not caught"));
  }
  SUBCASE("another, whose text says that memory was short") {
    in_flight("St13runtime_error");
    session.link().flags |= session::kLinkChecked | session::kLinkSaysMemory;
    session.link().served_since = 5000;
    CHECK(session.judged() == std::pair{crash_after_refusal, likely});
    CHECK(session.summary().ends_with("nobody caught the exception for lack of memory"));
    session.crash().time_ns += 11 * kSecond;
    CHECK(session.verdict().certainty == possible);
  }
  SUBCASE("a class of the program's own, long after the std::bad_alloc was caught") {
    in_flight("11PoolIsEmpty");
    session.link().flags |= session::kLinkThrown | session::kLinkBadAlloc;
    CHECK(session.verdict().certainty == likely);
    session.link().served_since = 500;
    CHECK(session.judged() == std::pair{uncaught_bad_alloc, possible});
  }
  SUBCASE("another, after a NULL that was handled") {
    in_flight("St11logic_error");
    session.link().flags |= session::kLinkChecked | session::kLinkRegardless;
    CHECK(session.verdict().code == crashed);
  }
  SUBCASE("the type is unknown: where it was thrown decides") {
    session.crash().flags |= session::kCrashNew;
    CHECK(session.verdict().code == uncaught_bad_alloc);
    session.crash().flags |= session::kCrashOtherThrow;
    CHECK(session.judged() == std::pair{crash_after_refusal, possible});
    session.link().served_since = 100;
    CHECK(session.judged() == std::pair{crashed, possible});
    session.link().served_since = 500;
    CHECK(session.verdict().certainty == likely);
  }
}

TEST_CASE("an abort is a consequence if only the failure leads to it") {
  CrashedSession session;
  abort_by_itself(session);
  const auto judged = [&](std::uint32_t flags, std::uint64_t served) {
    return session.judged(flags, served);
  };
  CHECK(judged(session::kLinkOnFailure, 40) == std::pair{crash_after_refusal, likely});
  CHECK(session.summary().ends_with("the program gave up"));
  CHECK(judged(session::kLinkRegardless, 0) == std::pair{crashed, likely});
  CHECK(session.summary().ends_with("the program dealt with it and went on"));
  CHECK(judged(session::kLinkHandling, 0) == std::pair{crash_after_refusal, likely});
  CHECK(judged(0, 8) == std::pair{crash_after_refusal, possible});
  CHECK(session.summary().ends_with("nothing excludes it"));
  CHECK(judged(0, 9) == std::pair{crashed, possible});
  CHECK(judged(0, 199) == std::pair{crashed, possible});
  CHECK(judged(0, 200) == std::pair{crashed, likely});
  CHECK(judged(session::kLinkHeapCorruption, 0) == std::pair{crashed, likely});
  CHECK(session.summary().ends_with("the C library found its heap damaged"));
  // The damage may be older than the refusal, but for a block that is freed twice there.
  const std::uint32_t damage = session::kLinkHeapCorruption | session::kLinkOnFailure;
  CHECK(judged(damage, 0) == std::pair{crash_after_refusal, possible});
  CHECK(judged(damage | session::kLinkDoubleFree, 0) == std::pair{crash_after_refusal, likely});
}

TEST_CASE("a bad_alloc that was caught leaves no result, but maybe a NULL of the program's own") {
  CrashedSession session;
  const auto judged = [&](std::uint32_t flags, std::uint64_t served) {
    return session.judged(session::kLinkThrown | flags, served);
  };
  CHECK(judged(0, 200) == std::pair{crashed, likely});
  CHECK(session.summary().ends_with("the program dealt with it and went on"));
  CHECK(judged(0, 9) == std::pair{crashed, possible});
  CHECK(judged(0, 2) == std::pair{null_dereference, possible});  // of its own NULL
  abort_by_itself(session);
  CHECK(judged(0, 2) == std::pair{crash_after_refusal, possible});
  CHECK(judged(0, 9) == std::pair{crashed, possible});
  CHECK(judged(0, 200) == std::pair{crashed, likely});
  CHECK(judged(session::kLinkHandling, 9) == std::pair{crash_after_refusal, likely});
}

TEST_CASE("a failure of another thread counts if the one that crashed has none") {
  CrashedSession session;
  session.link().flags = session::kLinkKnown | session::kLinkOtherThread | session::kLinkChecked;
  CHECK(session.judged() == std::pair{crashed, likely});
  CHECK(session.has("before the signal, which came in another thread; all threads made"));
  session.link().flags |= session::kLinkKept;
  CHECK(session.judged() == std::pair{null_dereference, possible});
}

TEST_CASE("a stack overflow is a consequence only where the program deals with the failure") {
  CrashedSession session;
  session.crash().address = 0x7ffd'6936'dfb0;
  session.crash().flags = session::kCrashGuardPage;
  session.link().flags = session::kLinkKnown | session::kLinkOnFailure;
  CHECK(session.verdict().code == crash_after_refusal);
  CHECK(session.has("beyond the end of the thread's stack"));
  CHECK(session.summary().ends_with("the program ran out of stack while it dealt with that"));
  session.link().flags = session::kLinkKnown;
  CHECK(session.verdict().code == crashed);
  CHECK(session.summary().ends_with("the thread's stack overflowed"));
}

TEST_CASE("a crash that does not follow says why, and denies memory only if that is excluded") {
  CrashedSession session;
  session.link().flags = session::kLinkKnown;
  Crash& crash = session.crash();
  std::string why = "; an earlier refused request probably does not explain it: ";
  SUBCASE("no failure") {
    crash.failure = 0;
    crash.failure_bytes = crash.failure_time_ns = 0;
    why = "; nothing was refused to its thread";
  }
  SUBCASE("the result was checked") {
    session.link().flags |= session::kLinkChecked;
    why += "the program dealt with it and went on";
    const verdict::Verdict verdict = session.verdict();
    REQUIRE(verdict.evidence_count == 2);
    CHECK(std::string_view{verdict.evidence[1]} ==
          "the program's code compares the result of that call");
  }
  SUBCASE("succeeded since") {
    crash.flags = session::kCrashSucceededSince;
    why += "the refused call has succeeded since";
  }
  SUBCASE("many requests since") {
    session.link().served_since = 812;
    why += "nothing links the two";
  }
  SUBCASE("sent by another process") {
    crash.code = SI_USER;
    crash.sender_pid = 4712;
    why = ", not for lack of memory: process 4712 sent the signal";
  }
  SUBCASE("a forged failure") {
    crash.failure = 999;
    why = "; nothing was refused to its thread";
  }
  SUBCASE("a forged time") {
    crash.failure_time_ns = crash.time_ns + 1;
    why = "; nothing was refused to its thread";
  }
  CHECK(session.verdict().code == crashed);
  CHECK(session.verdict(Trigger::killed).code == crashed);
  CHECK(session.summary().starts_with("python3.11 was ended by SIGSEGV"));
  CHECK(session.summary().ends_with(why));
  if (crash.failure != 999) {
    CHECK_FALSE(verdict::follows_failure(session.view()));
    // A bundle written for a failed request keeps its verdict.
    CHECK(session.verdict(Trigger::soft_limit).code == soft_limit);
  }
}

TEST_CASE("an older recording has no link: then only time counts, and nothing is certain") {
  CrashedSession session;
  session.link() = {};
  session.crash().time_ns = session.crash().failure_time_ns + 10 * kSecond;
  CHECK(session.summary().starts_with("SIGSEGV at address 0x10, 10.0 s after"));
  CHECK(session.verdict().certainty == possible);
  session.crash().time_ns += 1;
  CHECK(session.judged() == std::pair{crashed, possible});
}

TEST_CASE("a crash explains the bundle of its own failure, no other and no requested one") {
  CrashedSession session;
  CHECK(session.verdict(Trigger::soft_limit).code == null_dereference);
  CHECK(verdict::verdict_of(session.view(), Trigger::soft_limit, session.failure).code ==
        soft_limit);
  CHECK(session.verdict(Trigger::request).code == requested);
  session.crash().signal = 0;  // the handler did not get this far
  CHECK(session.verdict(Trigger::soft_limit).code == soft_limit);
}

namespace {

bool name_by_offset(InHook, std::uint64_t start, std::uint64_t pc, char* name,
                    std::size_t capacity) noexcept {
  constexpr std::string_view kNames[] = {"abort",         "_ZSt9terminatev",    "_Znwm",
                                         "main",          "__cxa_throw",        "free",
                                         "__assert_fail", "_ZnwmRKSt9nothrow_t"};
  const std::uint64_t at = (pc - start) / 16;
  if (at >= std::size(kNames)) return false;
  text::Text{name, capacity}.add(kNames[at]);
  return true;
}

std::uint64_t frame_of(const CrashedSession& session, std::uint64_t name) {
  return session::native_frame(session.libc, name * 16 + 1);
}

helper::CrashNames names_of(CrashedSession& session) {
  return helper::names_of_crash(OutsideHooks::in_hook(), session.view(), session.crash(),
                                name_by_offset, session.link().function);
}

std::uint32_t flags_of(CrashedSession& session) { return names_of(session).flags; }

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

TEST_CASE("names tell which function of the C library ended the program, and for whom") {
  CrashedSession session;
  const auto frame = [&](std::uint64_t name) { return frame_of(session, name); };
  constexpr std::uint64_t kUnnamed = 99;
  Crash& crash = session.crash();
  crash.frame_count = 5;
  for (auto& word : crash.frames) word = session::native_frame(0, 1);  // of no module
  crash.frames[0] = frame(kUnnamed);
  crash.frames[1] = frame(0);  // abort
  crash.frames[2] = frame(kUnnamed);
  CHECK_FALSE(names_of(session).heap_corruption);
  CHECK(std::string{session.link().function}.empty());
  crash.frames[3] = frame(5);  // free
  CHECK(names_of(session).heap_corruption);
  CHECK(std::string{session.link().function} == "free");
  crash.frames[2] = frame(6);  // __assert_fail
  CHECK_FALSE(names_of(session).heap_corruption);
  CHECK(std::string{session.link().function} == "assert_fail");
  // Without names it is the allocator's if there are enough frames.
  crash.frame_count = 6;
  for (const std::size_t i : {2u, 3u, 4u}) crash.frames[i] = frame(kUnnamed);
  crash.frames[5] = session::native_frame(0, 1);
  CHECK(names_of(session).heap_corruption);
  crash.frames[3] = frame(3);
  CHECK_FALSE(names_of(session).heap_corruption);
  crash.frames[3] = frame(kUnnamed);
  // Beyond the C library it is the program's own business.
  crash.frames[2] = session::native_frame(0, 1);
  CHECK_FALSE(names_of(session).heap_corruption);
}

TEST_CASE("names tell an operator new that returns NULL") {
  CrashedSession session;
  session.refusal->node =
      session.stack({frame_of(session, 3), frame_of(session, 7), frame_of(session, 2)});
  CHECK(names_of(session).nothrow);
  CHECK(names_of(session).new_frames == 2);
  CHECK(names_of(session).cxx_runtime != 0);
  session.refusal->node = session.stack({frame_of(session, 3), frame_of(session, 2)});
  CHECK_FALSE(names_of(session).nothrow);
}
