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
#include "tests/unit/common/verdict/page.h"

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
  void show(const char* facts) const { verdict::show(facts, verdict()); }
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
  session.show("SIGSEGV at an address that was computed from a refused request's NULL");
  session.crash().failure_bytes = 4096;
  session.show("the same after a repeat of 4 KiB, which counts");
}

TEST_CASE("how certain a null dereference is") {
  constexpr std::uint64_t kNear = 0x10, kFar = 1 << 20;
  const struct {
    const char* how;
    std::uint32_t flags;
    std::uint64_t served, address;
    Certainty certainty;
    std::uint64_t later_s = 0;
  } rows[] = {
      {"computed from the result", session::kLinkDerived | session::kLinkChecked, 8, kNear, proven},
      {"computed from what a variable held much later", session::kLinkDerived, 900, kNear, likely},
      {"passed to the function that crashed", session::kLinkArgument, 0, kNear, likely},
      {"an offset into the block there", session::kLinkArgument, 0, kFar, proven},
      {"kept without a check, soon used", session::kLinkUnchecked, 3, kNear, likely},
      {"kept without a check, used much later", session::kLinkUnchecked | session::kLinkKept, 812,
       kNear, possible, 12},
      {"an index far into the block, much later", session::kLinkUnchecked | session::kLinkKept, 812,
       kFar, likely},
      {"checked, but stored", session::kLinkChecked | session::kLinkKept, 2, kNear, possible},
      {"nothing is known about the code", 0, 2, kNear, possible},
      {"nothing is known about it, nothing happened since", 0, 0, kNear, likely},
      {"nothing happened for 12 s", 0, 0, kNear, possible, 12},
      {"unchecked, in another thread", session::kLinkUnchecked | session::kLinkOtherThread, 0,
       kNear, possible},
      {"in the path that deals with the failure", session::kLinkChecked | session::kLinkOnFailure,
       2, kNear, likely},
  };
  for (const auto& row : rows) {
    CAPTURE(row.how);
    CrashedSession session;
    session.crash().address = row.address;
    session.crash().time_ns += row.later_s * kSecond;
    CHECK(session.judged(row.flags, row.served) == std::pair{null_dereference, row.certainty});
    session.show(row.how);
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
  session.show("an old block that was overrun");
  abort_by_itself(session);
  session.crash().signal = SIGFPE;
  session.crash().code = FPE_INTDIV;
  session.link().flags = session::kLinkKnown | session::kLinkRegardless | session::kLinkDerived;
  session.show("a division by a size that became 0");
  session.link().flags &= ~session::kLinkDerived;
  CHECK(session.verdict().code == crashed);
}

TEST_CASE("a pointer that the failed call has not set") {
  CrashedSession session;
  session.crash().address = std::uint64_t{1} << 45;
  session.show("a pointer that the failed call has not set");
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
  session.show("MAP_FAILED");
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
  session.show("a wild pointer after a refusal");
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
    session.show("the std::bad_alloc of the failed request");
    session.crash().flags |= session::kCrashOtherThrow;  // another one
    CHECK(session.judged() == std::pair{uncaught_bad_alloc, likely});
  }
  SUBCASE("another, thrown while that one was being handled") {
    in_flight("St13runtime_error");
    session.link().flags |= session::kLinkHandling;
    session.show("another exception, thrown while that one was being handled");
  }
  SUBCASE("another, thrown only if the call fails") {
    in_flight("St13runtime_error");
    session.link().flags |= session::kLinkChecked | session::kLinkOnFailure;
    session.show("another exception, thrown only if the call fails");
  }
  SUBCASE("another, after the std::bad_alloc was caught") {
    in_flight("St11logic_error");
    session.crash().flags |= session::kCrashNew | session::kCrashOtherThrow;
    session.show("another exception, after the std::bad_alloc was caught");
  }
  SUBCASE("another, whose text says that memory was short") {
    in_flight("St13runtime_error");
    session.link().flags |= session::kLinkChecked | session::kLinkSaysMemory;
    session.link().served_since = 5000;
    session.show("another exception, whose text says that memory was short");
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
  session.show("an abort where only a failure leads");
  CHECK(judged(session::kLinkRegardless, 0) == std::pair{crashed, likely});
  session.show("an abort after the failure was dealt with");
  CHECK(judged(session::kLinkHandling, 0) == std::pair{crash_after_refusal, likely});
  CHECK(judged(0, 8) == std::pair{crash_after_refusal, possible});
  session.show("an abort after 8 other requests");
  CHECK(judged(0, 9) == std::pair{crashed, possible});
  CHECK(judged(0, 199) == std::pair{crashed, possible});
  CHECK(judged(0, 200) == std::pair{crashed, likely});
  CHECK(judged(session::kLinkHeapCorruption, 0) == std::pair{crashed, likely});
  session.show("an abort in the C library, for its heap is damaged");
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
  session.show("SIGSEGV long after a std::bad_alloc was caught");
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
  session.show("the failure of another thread, which was checked");
  session.link().flags |= session::kLinkKept;
  CHECK(session.judged() == std::pair{null_dereference, possible});
}

TEST_CASE("a stack overflow is a consequence only where the program deals with the failure") {
  CrashedSession session;
  session.crash().address = 0x7ffd'6936'dfb0;
  session.crash().flags = session::kCrashGuardPage;
  session.link().flags = session::kLinkKnown | session::kLinkOnFailure;
  session.show("a stack overflow where the program deals with the failure");
  session.link().flags = session::kLinkKnown;
  session.show("a stack overflow elsewhere");
}

TEST_CASE("a crash that does not follow says why, and denies memory only if that is excluded") {
  CrashedSession session;
  session.link().flags = session::kLinkKnown;
  Crash& crash = session.crash();
  const char* why = "SIGSEGV, not after a refusal";
  SUBCASE("no failure") {
    crash.failure = 0;
    crash.failure_bytes = crash.failure_time_ns = 0;
  }
  SUBCASE("the result was checked") {
    session.link().flags |= session::kLinkChecked;
    why = "SIGSEGV after a refusal that was checked";
  }
  SUBCASE("succeeded since") {
    crash.flags = session::kCrashSucceededSince;
    why = "SIGSEGV after the refused call has succeeded";
  }
  SUBCASE("many requests since") {
    session.link().served_since = 812;
    why = "SIGSEGV 812 requests after a refusal";
  }
  SUBCASE("sent by another process") {
    crash.code = SI_USER;
    crash.sender_pid = 4712;
    why = "SIGSEGV from another process, after a refusal";
  }
  SUBCASE("a forged failure") {
    crash.failure = 999;
    why = "SIGSEGV after a failure that is not there";
  }
  SUBCASE("a forged time") {
    crash.failure_time_ns = crash.time_ns + 1;
    why = "SIGSEGV before the failure";
  }
  session.show(why);
  CHECK(session.verdict(Trigger::killed).code == crashed);
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
  session.show("an older recording: SIGSEGV 10 s after a refusal");
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
