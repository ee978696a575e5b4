// A signal that ended the process: in words, with the failed request that it follows from, or why
// that one does not explain it (crash_ruling.h).
#include <algorithm>
#include <cstring>
#include <utility>

#include "common/text/text.h"
#include "common/verdict/crash_ruling.h"
#include "common/verdict/parts.h"

namespace oomrec::verdict {
namespace {

using session::Crash;
using session::CrashLink;
using session::Failure;
using session::TableId;
using session::View;

void add_crash_signal(text::Text& text, const Crash& crash) noexcept {
  const std::uint32_t signal = crash.signal.load(std::memory_order_relaxed);
  const std::string_view name = text::signal_name(signal);
  name.empty() ? text.add("signal ").number(signal) : text.add(name);
  if (session::has_address(crash)) text.add(" at address ").hexadecimal(crash.address);
}

// "malloc refused 1.0 GiB"
void add_failed_request(text::Text& text, const Crash& crash, const Failure& failure) noexcept {
  text.add(name_of(static_cast<Api>(failure.api)));
  if (crash.failure_bytes == 0) {
    text.add(" was refused");
  } else if (crash.failure_bytes == session::kUnlimited) {
    text.add(" refused more than 16 EiB");
  } else {
    text.add(" refused ").size(crash.failure_bytes);
  }
}

// "in thread 4711 "python3" malloc refused 1.0 GiB 0.2 ms before the signal"
void add_link(Verdict& verdict, const View& view, const Crash& crash,
              const Failure& failure) noexcept {
  if (crash.failure_time_ns > crash.time_ns) return;  // only in a damaged recording
  add_line(verdict, [&](text::Text& line) {
    const CrashLink& link = view.header().crash_link;
    const bool elsewhere = (link.flags & session::kLinkOtherThread) != 0;
    session::Thread thread{};
    if (view.read(TableId::threads, elsewhere ? failure.thread : crash.thread, thread)) {
      line.add("in thread ").signed_number(thread.tid).add(" \"");
      line.add({thread.name, strnlen(thread.name, sizeof thread.name)}).add("\" ");
    }
    add_failed_request(line, crash, failure);
    line.add(' ');
    add_time(line, crash.time_ns - crash.failure_time_ns);
    line.add(" before the signal").add(elsewhere ? ", which came in another thread" : "");
    if ((link.flags & session::kLinkKnown) == 0) return;
    line.add(elsewhere ? "; all threads made " : "; the thread made ").number(link.served_since);
    line.add(link.served_since == 1 ? " other allocation" : " other allocations");
    line.add(" in between");
  });
}

// What the program did, and how its sentence sounds when that is not certain.
struct Words {
  Link link;
  VerdictCode code;
  std::string_view proven, likely, possible;
  std::string_view evidence;
};
// "RESULT" stands for what the failed call returned.
constexpr Words kWords[] = {
    {Link::derived,
     VerdictCode::null_dereference,
     "the program used the RESULT it was given",
     "the program used the RESULT it was given",
     {},
     "the address was computed from the RESULT of that call"},
    {Link::not_set,
     VerdictCode::crash_after_refusal,
     {},
     "the program used a pointer that was not set because of that",
     "the program may have used a pointer that was not set because of that",
     "that pointer is what a success of the call stores or returns"},
    {Link::argument,
     VerdictCode::null_dereference,
     "the program passed on the RESULT it was given",
     "the program passed on the RESULT it was given",
     {},
     "that RESULT was an argument of the call in which the program crashed"},
    {Link::near_result,
     VerdictCode::null_dereference,
     {},
     "the program probably used the RESULT it was given",
     "the program may have used the RESULT it was given",
     "the address is RESULT plus less than what was asked for"},
    {Link::failure_path,
     VerdictCode::crash_after_refusal,
     {},
     "the program gave up",
     "the program gave up",
     "only a refusal of that call leads to where the program ended"},
    {Link::failure_overflow,
     VerdictCode::crash_after_refusal,
     {},
     "the program ran out of stack while it dealt with that",
     {},
     "the address lies beyond the end of the thread's stack"},
    {Link::failure_damage,
     VerdictCode::crash_after_refusal,
     {},
     "the program freed a block twice while it dealt with that",
     "the C library found its heap damaged while the program dealt with that",
     "only a refusal of that call leads to where the heap was found damaged"},
    {Link::divided,
     VerdictCode::crash_after_refusal,
     {},
     "the program divided by a size that had become 0",
     {},
     "the divisor was computed from the RESULT of that call"},
    {Link::old_block,
     VerdictCode::crash_after_refusal,
     {},
     "the program went on as if the block had grown",
     "the program may have gone on as if the block had grown",
     "the address is the first one behind the old block that is not mapped"},
    {Link::memory_exception,
     VerdictCode::crash_after_refusal,
     {},
     "nobody caught the exception for lack of memory",
     "nobody caught the exception for lack of memory",
     "the exception's text or error code says that memory was short"},
    {Link::bad_alloc, VerdictCode::uncaught_bad_alloc, "nobody caught the std::bad_alloc",
     "nobody caught the std::bad_alloc",
     "nobody caught an exception of the program's own that is a std::bad_alloc, too",
     "std::terminate is on the stack of the abort"},
    {Link::during_bad_alloc,
     VerdictCode::crash_after_refusal,
     {},
     "the program ended while it handled the std::bad_alloc",
     {},
     "a std::bad_alloc was being handled"},
    {Link::shortly_after,
     VerdictCode::crash_after_refusal,
     {},
     {},
     "it may have ended because of that",
     "few other allocations were made in between"},
};

void add_words(text::Text& text, std::string_view words, std::string_view result) noexcept {
  constexpr std::string_view kResult = "RESULT";
  const std::size_t at = words.find(kResult);
  text.add(words.substr(0, at));
  if (at != words.npos) text.add(result).add(words.substr(at + kResult.size()));
}

// Sets the code, the end of the sentence, and the evidence.
void judge(Verdict& verdict, const Ruling& ruling, const Crash& crash, const Failure& failure,
           text::Text& sentence) noexcept {
  const Words& words = *std::find_if(std::begin(kWords), std::end(kWords) - 1,
                                     [&](const Words& row) { return row.link == ruling.link; });
  const std::string_view result = fails_with_minus_one(failure) ? "MAP_FAILED" : "NULL";
  verdict.code = words.code;
  verdict.certainty = ruling.certainty;
  const bool thrown = (crash.flags & session::kCrashTerminate) != 0 &&
                      (ruling.link == Link::failure_path || ruling.link == Link::during_bad_alloc);
  add_words(sentence,
            thrown                                  ? "another exception was not caught"
            : ruling.certainty == Certainty::proven ? words.proven
            : ruling.certainty == Certainty::likely ? words.likely
                                                    : words.possible,
            result);
  if (ruling.certainty == Certainty::possible) sentence.add("; nothing excludes it");
  add_line(verdict, [&](text::Text& line) { add_words(line, words.evidence, result); });
  if ((crash.flags & session::kCrashTerminate) != 0 && ruling.link != Link::bad_alloc)
    add_line(verdict,
             [](text::Text& line) { line.add("std::terminate is on the stack of the abort"); });
}

void explain_link(Verdict& verdict, const View& view, const Ruling& ruling) noexcept {
  const Crash& crash = view.header().crash;
  Failure failure{};
  view.read(TableId::failures, crash.failure, failure);
  char words[sizeof verdict.summary];
  text::Text sentence{words};
  add_crash_signal(sentence, crash);
  sentence.add(", ");
  add_time(sentence, crash.time_ns - crash.failure_time_ns);
  sentence.add(" after ");
  add_failed_request(sentence, crash, failure);
  sentence.add(": ");
  add_link(verdict, view, crash, failure);
  judge(verdict, ruling, crash, failure, sentence);

  // Why the request failed: one line for that verdict's sentence, then its evidence.
  const VerdictCode code = verdict.code;
  char* const why = verdict.evidence[verdict.evidence_count++];
  explain_failed_request(verdict, view, failure);
  text::Text{why, sizeof verdict.evidence[0]}.add(verdict.summary);
  verdict.code = code;
  verdict.certainty = ruling.certainty;
  text::Text{verdict.summary}.add(sentence.view());
}

// Why a crash does not follow from the failed request.
struct Reason {
  Link link;
  std::string_view words;
};
constexpr Reason kReasons[] = {
    {Link::heap_corruption, "the C library found its heap damaged"},
    {Link::stack_overflow, "the thread's stack overflowed"},
    {Link::handled, "the program dealt with it and went on"},
    {Link::other_exception, "another exception was not caught"},
    {Link::other_address, "its result does not lead to such an address"},
    {Link::succeeded_since, "the refused call has succeeded since"},
    {Link::much_later, "nothing links the two"},
};

// How it is known that the program has dealt with its failed request.
void add_handling(Verdict& verdict, std::uint32_t flags) noexcept {
  constexpr std::pair<std::uint32_t, std::string_view> kSigns[] = {
      {session::kLinkChecked, "the program's code compares the result of that call"},
      {session::kLinkRegardless, "a success of that call leads to where it was ended as well"},
      {session::kLinkThrown, "the std::bad_alloc that it threw was caught"},
  };
  for (const auto& sign : kSigns)
    if ((flags & sign.first) != 0)
      add_line(verdict, [&](text::Text& line) { line.add(sign.second); });
}

void explain_without_link(Verdict& verdict, const View& view, const Ruling& ruling) noexcept {
  const Crash& crash = view.header().crash;
  const std::string_view program = text::base_name(view.string(program_of(view.header())));
  verdict.code = VerdictCode::crashed;
  verdict.certainty = ruling.certainty;
  text::Text summary{verdict.summary};
  summary.add(program.empty() ? "the process" : program).add(" was ended by ");
  add_crash_signal(summary, crash);
  Failure failure{};
  const bool failed = crash.failure != 0 && view.read(TableId::failures, crash.failure, failure);
  if (ruling.link == Link::sent) {
    summary.add(", not for lack of memory: process ").signed_number(crash.sender_pid);
    summary.add(" sent the signal");
  } else if (ruling.link == Link::no_failure) {
    summary.add("; nothing was refused to its thread");
  } else {
    const Reason& reason =
        *std::find_if(std::begin(kReasons), std::end(kReasons) - 1,
                      [&](const Reason& row) { return row.link == ruling.link; });
    const bool unnamed =
        ruling.link == Link::other_exception && view.header().crash_link.exception[0] == '\0';
    summary.add("; an earlier refused request probably does not explain it: ");
    summary.add(unnamed ? "std::terminate was called, with no exception in sight" : reason.words);
  }
  if (!failed) return;
  add_link(verdict, view, crash, failure);
  if (ruling.link == Link::handled) add_handling(verdict, view.header().crash_link.flags);
}

}  // namespace

void add_time(text::Text& text, std::uint64_t ns) noexcept {
  const bool seconds = ns >= 1'000'000'000;
  const std::uint64_t tenths = ns / (seconds ? 100'000'000 : 100'000);
  text.number(tenths / 10).add('.').number(tenths % 10).add(seconds ? " s" : " ms");
}

bool follows_failure(const View& view, Certainty at_least) noexcept {
  const Ruling ruling = ruling_of(view);
  return ruling.follows() && ruling.certainty >= at_least;
}

bool is_separate_crash(const View& view) noexcept {
  if (view.header().crash.signal.load(std::memory_order_acquire) == 0) return false;
  const Ruling ruling = ruling_of(view);
  return !ruling.follows() && ruling.link != Link::no_failure;
}

void explain_crash(Verdict& verdict, const View& view) noexcept {
  const Ruling ruling = ruling_of(view);
  ruling.follows() ? explain_link(verdict, view, ruling)
                   : explain_without_link(verdict, view, ruling);
}

}  // namespace oomrec::verdict
