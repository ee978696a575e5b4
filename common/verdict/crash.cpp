// A signal that ended the process: whether it follows from a failed allocation, and how.
//
// It does if an allocation of the same thread failed shortly before, the same call has not
// succeeded since, and no other process sent the signal. Otherwise the crash is not about memory,
// and the verdict says why.
#include <signal.h>

#include <algorithm>
#include <cstring>

#include "common/text/text.h"
#include "common/verdict/parts.h"

namespace oomrec::verdict {
namespace {

using session::Crash;
using session::Failure;
using session::TableId;
using session::View;

constexpr std::uint64_t kFollowsNs = 10'000'000'000;
constexpr std::uint64_t kAtOnceNs = 1'000'000'000;           // later the NULL may be another
constexpr std::uint64_t kNearNull = std::uint64_t{1} << 30;  // beyond it: not NULL plus an offset

enum class Ruling : std::uint8_t { follows, sent, no_failure, too_late, succeeded_since };

Ruling ruling_of(const session::Header& header) noexcept {
  const Crash& crash = header.crash;
  if (crash.sender_pid != 0 && crash.sender_pid != header.pid) return Ruling::sent;
  if (crash.failure_time_ns == 0) return Ruling::no_failure;
  if (crash.time_ns - crash.failure_time_ns > kFollowsNs) return Ruling::too_late;
  return (crash.flags & session::kCrashSucceededSince) != 0 ? Ruling::succeeded_since
                                                            : Ruling::follows;
}

bool is_signal(const Crash& crash, int signal) noexcept {
  return crash.signal.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(signal);
}

// Calls that return MAP_FAILED (-1) instead of NULL.
bool fails_with_minus_one(const Failure& failure) noexcept {
  const Api api = static_cast<Api>(failure.api);
  return api == Api::mmap || api == Api::mremap || api == Api::sbrk || api == Api::shmat;
}

// Whether the host can access the block: a GPU's own memory has no address on the host.
bool is_for_host(const Failure& failure) noexcept {
  const Api api = static_cast<Api>(failure.api);
  return is_on_host(static_cast<Space>(failure.space)) || api == Api::cuMemAllocManaged ||
         api == Api::hipMallocManaged;
}

// The program used the failed call's result as an address.
bool is_null_dereference(const Crash& crash, const Failure& failure) noexcept {
  const std::uint64_t offset = crash.address + (fails_with_minus_one(failure) ? 1 : 0);
  return is_for_host(failure) && is_signal(crash, SIGSEGV) && session::has_address(crash) &&
         offset < std::min(crash.failure_bytes, kNearNull);
}

void add_signal(text::Text& text, const Crash& crash) noexcept {
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
  add_line(verdict, [&](text::Text& line) {
    session::Thread thread{};
    if (view.read(TableId::threads, crash.thread, thread)) {
      line.add("in thread ").signed_number(thread.tid).add(" \"");
      line.add({thread.name, strnlen(thread.name, sizeof thread.name)}).add("\" ");
    }
    add_failed_request(line, crash, failure);
    line.add(' ');
    add_time(line, crash.time_ns - crash.failure_time_ns);
    line.add(" before the signal");
  });
}

// Decides how the crash follows: sets the code, the end of the sentence, and the evidence.
void judge(Verdict& verdict, const Crash& crash, const Failure& failure,
           text::Text& sentence) noexcept {
  const auto line = [&](std::string_view words) {
    add_line(verdict, [&](text::Text& text) { text.add(words); });
  };
  const bool terminated = is_signal(crash, SIGABRT) && (crash.flags & session::kCrashTerminate);
  verdict.code = VerdictCode::crash_after_refusal;
  verdict.certainty = Certainty::likely;
  if (is_null_dereference(crash, failure)) {
    verdict.code = VerdictCode::null_dereference;
    const std::string_view result = fails_with_minus_one(failure) ? "MAP_FAILED" : "NULL";
    const bool at_once = crash.time_ns - crash.failure_time_ns <= kAtOnceNs;
    const bool by_driver = is_driver_api(static_cast<Api>(failure.api));  // returns an error code
    sentence.add(at_once ? "the program used the " : "the program may have used the ");
    sentence.add(result).add(by_driver ? " it got instead of an address" : " it was given");
    add_line(verdict, [&](text::Text& text) {
      text.add("the address is ").add(result).add(" plus less than what was asked for");
    });
  } else if (terminated && (crash.flags & session::kCrashOtherThrow) != 0) {
    sentence.add("another exception was not caught");
    line("std::terminate is on the stack of the abort; what was thrown came from elsewhere");
  } else if (terminated && (crash.flags & session::kCrashNew) != 0) {
    verdict.code = VerdictCode::uncaught_bad_alloc;
    sentence.add("nobody caught the std::bad_alloc");
    line("operator new made the refused call; std::terminate is on the stack of the abort");
  } else if (terminated) {
    sentence.add("an exception was not caught");
    line("std::terminate is on the stack of the abort");
  } else if ((crash.flags & session::kCrashGuardPage) != 0) {
    sentence.add("the program ran out of stack while it dealt with that");
    line("the address lies beyond the end of the thread's stack");
  } else if (is_signal(crash, SIGABRT)) {
    sentence.add("the program gave up");
    line("the process sent the signal to itself");
  } else {
    sentence.add("the program did not recover");
  }
}

void explain_link(Verdict& verdict, const View& view, const Crash& crash,
                  const Failure& failure) noexcept {
  char words[sizeof verdict.summary];
  text::Text sentence{words};
  add_signal(sentence, crash);
  sentence.add(", ");
  add_time(sentence, crash.time_ns - crash.failure_time_ns);
  sentence.add(" after ");
  add_failed_request(sentence, crash, failure);
  sentence.add(": ");
  add_link(verdict, view, crash, failure);
  judge(verdict, crash, failure, sentence);
  add_line(verdict, [](text::Text& text) { text.add("the same call has not succeeded since"); });

  // Why the request failed: one line for that verdict's sentence, then its evidence.
  const VerdictCode code = verdict.code;
  const Certainty certainty = verdict.certainty;
  char* const why = verdict.evidence[verdict.evidence_count++];
  explain_failed_request(verdict, view, failure);
  text::Text{why, sizeof verdict.evidence[0]}.add(verdict.summary);
  verdict.code = code;
  verdict.certainty = certainty;
  text::Text{verdict.summary}.add(sentence.view());
}

void explain_without_link(Verdict& verdict, const View& view, Ruling ruling) noexcept {
  const Crash& crash = view.header().crash;
  const std::string_view program = text::base_name(view.string(view.header().executable));
  verdict.code = VerdictCode::crashed;
  verdict.certainty = Certainty::likely;
  text::Text summary{verdict.summary};
  summary.add(program.empty() ? "the process" : program).add(" was ended by ");
  add_signal(summary, crash);
  summary.add(", not for lack of memory: ");
  switch (ruling) {
    case Ruling::sent:
      summary.add("process ").signed_number(crash.sender_pid).add(" sent the signal");
      break;
    case Ruling::too_late:
      summary.add("the thread's last refusal was ");
      add_time(summary, crash.time_ns - crash.failure_time_ns);
      summary.add(" before");
      break;
    case Ruling::succeeded_since:
      summary.add("the refused call has succeeded since");
      break;
    default:
      summary.add("nothing was refused to its thread");
  }
  Failure failure{};
  if (crash.failure != 0 && view.read(TableId::failures, crash.failure, failure))
    add_link(verdict, view, crash, failure);
}

}  // namespace

void add_time(text::Text& text, std::uint64_t ns) noexcept {
  const bool seconds = ns >= 1'000'000'000;
  const std::uint64_t tenths = ns / (seconds ? 100'000'000 : 100'000);
  text.number(tenths / 10).add('.').number(tenths % 10).add(seconds ? " s" : " ms");
}

bool follows_failure(const session::Header& header) noexcept {
  return ruling_of(header) == Ruling::follows;
}

void explain_crash(Verdict& verdict, const View& view) noexcept {
  const Crash& crash = view.header().crash;
  const Ruling ruling = ruling_of(view.header());
  Failure failure{};
  if (ruling != Ruling::follows) return explain_without_link(verdict, view, ruling);
  if (!view.read(TableId::failures, crash.failure, failure))  // forged, or the table was full
    return explain_without_link(verdict, view, Ruling::no_failure);
  explain_link(verdict, view, crash, failure);
}

}  // namespace oomrec::verdict
