#include "common/verdict/crash_ruling.h"

#include <signal.h>

#include <cstring>
#include <string_view>

namespace oomrec::verdict {
namespace {

using session::Crash;
using session::CrashLink;
using session::Failure;

constexpr std::uint64_t kFewRequests = 8;     // a report of the failure on stderr makes some
constexpr std::uint64_t kManyRequests = 200;  // the program has long been doing something else
// Further from NULL than a member of a structure: an index into what was asked for.
constexpr std::uint64_t kFar = 64 * 1024;
// Beyond, an address is more likely a wild one.
constexpr std::uint64_t kFurthest = std::uint64_t{1} << 30;
constexpr std::uint64_t kSoonNs = 10'000'000'000;

// The evidence, by name.
struct Evidence {
  const Crash& crash;
  const CrashLink& link;
  const Failure& failure;

  bool has(std::uint32_t flag) const noexcept { return (link.flags & flag) != 0; }
  bool crash_has(std::uint32_t flag) const noexcept { return (crash.flags & flag) != 0; }
  bool is_signal(int number) const noexcept {
    return crash.signal.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(number);
  }
  // A fault of an access, not a signal that the process sent to itself or a trap instruction.
  bool is_fault() const noexcept {
    return crash.code > 0 && (is_signal(SIGSEGV) || is_signal(SIGBUS));
  }
  bool is_soon() const noexcept { return crash.time_ns - crash.failure_time_ns <= kSoonNs; }
  // A recording without a link has the time only.
  bool few_served() const noexcept {
    if (has(session::kLinkKnown)) return link.served_since <= kFewRequests;
    return is_soon() && !crash_has(session::kCrashSucceededSince);
  }
  bool none_served() const noexcept { return has(session::kLinkKnown) && link.served_since == 0; }
  bool many_served() const noexcept {
    return has(session::kLinkKnown) && link.served_since >= kManyRequests;
  }
  // Not even the function that made the failed call has returned.
  bool is_in_caller() const noexcept {
    return has(session::kLinkKnown) && !has(session::kLinkOtherThread) &&
           link.failure_frames != 0 && link.failure_frames == link.common_frames;
  }
  // A type of the program's own, thrown after the program had dealt with the failure's.
  bool is_own_bad_alloc() const noexcept {
    const std::string_view type{link.exception, strnlen(link.exception, sizeof link.exception)};
    return !type.empty() && type != "St9bad_alloc" && !has(session::kLinkOnFailure) &&
           !has(session::kLinkHandling) && !few_served();
  }
  // operator new has thrown, and that exception is over: the program caught it.
  bool was_caught() const noexcept {
    return has(session::kLinkThrown) && !has(session::kLinkOtherThread) &&
           !has(session::kLinkBadAlloc) && !has(session::kLinkHandling);
  }
  std::uint64_t offset() const noexcept {
    return crash.address + (fails_with_minus_one(failure) ? 1 : 0);
  }
  // Whether the host can access the block: a GPU's own memory has no address on the host.
  bool is_for_host() const noexcept {
    return is_on_host(static_cast<Space>(failure.space)) ||
           function_of(static_cast<Api>(failure.api)).has(kOnHost);
  }
  // The fault address is the result plus an offset within what was asked for.
  bool is_in_request(std::uint64_t furthest) const noexcept {
    return is_for_host() && is_signal(SIGSEGV) && session::has_address(crash) &&
           offset() < crash.failure_bytes && offset() < furthest;
  }
  // It lies just before where the block would begin: its header, or the element before the first.
  bool is_before_request() const noexcept {
    const std::uint64_t before = 0 - offset();
    return is_for_host() && is_signal(SIGSEGV) && session::has_address(crash) && before != 0 &&
           before <= kFar;
  }
};

// It returns an error; the block would be in a variable of the caller's.
bool has_result_elsewhere(const Failure& failure) noexcept {
  const Function& function = function_of(static_cast<Api>(failure.api));
  return function.failed == Failed::error_number && function.has(kAllocator);
}

Ruling likely_if(bool likely, Link link) noexcept {
  return {link, likely ? Certainty::likely : Certainty::possible};
}

Ruling rule_on_fault(const Evidence& e) noexcept {
  const bool checked = e.has(session::kLinkChecked);
  const bool before = e.is_before_request();
  if (e.has(session::kLinkDerived) && (before || e.is_in_request(session::kUnlimited)))
    return {Link::derived, e.few_served() ? Certainty::proven : Certainty::likely};
  if (e.has(session::kLinkDerived)) return likely_if(e.few_served(), Link::not_set);
  const bool far = e.offset() >= kFar && !before;
  const bool in_request = e.is_in_request(kFurthest);
  if (e.has(session::kLinkOldBlock)) return likely_if(e.few_served(), Link::old_block);
  if (e.has(session::kLinkArgument) && (before || in_request))
    return {Link::argument, far ? Certainty::proven : Certainty::likely};
  if (e.has(session::kLinkOnFailure))
    return {in_request                              ? Link::near_result
            : e.crash_has(session::kCrashGuardPage) ? Link::failure_overflow
                                                    : Link::failure_path,
            Certainty::likely};
  const bool kept = e.has(session::kLinkKept);
  if (e.crash_has(session::kCrashSucceededSince) && !kept)
    return {Link::succeeded_since, Certainty::likely};
  if (e.crash_has(session::kCrashGuardPage)) return {Link::stack_overflow, Certainty::likely};
  const bool few = e.few_served();
  // The program may have gone on in the reserved memory that it could not commit.
  const bool may_be_commit = (e.failure.flags & session::kFailureCommit) != 0 && few;
  // An unchecked result may have led anywhere.
  const bool is_ignored = kept && e.has(session::kLinkUnchecked) && few && e.is_soon();
  if (!in_request && (may_be_commit || is_ignored))
    return {Link::shortly_after, Certainty::possible};
  if (!in_request) return {Link::other_address, Certainty::likely};
  // There is no result, but the program may have put a NULL of its own in its place.
  if (e.has(session::kLinkThrown))
    return few ? Ruling{Link::near_result, Certainty::possible}
               : likely_if(e.many_served(), Link::handled);
  if (e.has(session::kLinkOtherThread))
    return kept || e.has(session::kLinkUnchecked) || !checked
               ? Ruling{Link::near_result, Certainty::possible}
               : Ruling{Link::handled, Certainty::likely};
  if (e.has(session::kLinkUnchecked)) return likely_if(few || far, Link::near_result);
  if (!checked && e.none_served()) return likely_if(e.is_soon(), Link::near_result);
  if (kept) return likely_if(few && far, Link::near_result);
  // A function that compares mmap's -1 often returns a NULL of its own in its place. What
  // posix_memalign returns is compared; the block's place still has the NULL from before.
  const bool may_be_made_null =
      (fails_with_minus_one(e.failure) || has_result_elsewhere(e.failure)) && e.none_served() &&
      e.is_soon();
  if (checked && e.has(session::kLinkRegardless) && !may_be_made_null)
    return {Link::handled, Certainty::likely};
  if (few && far) return {Link::near_result, Certainty::possible};
  if (checked && !may_be_made_null) return {Link::handled, Certainty::likely};
  if (few || far) return {Link::near_result, Certainty::possible};
  return {Link::much_later, Certainty::possible};
}

Ruling rule_on_exception(const Evidence& e) noexcept {
  const bool other = e.crash_has(session::kCrashOtherThrow);
  const bool by_new = e.crash_has(session::kCrashNew);
  if (e.link.exception[0] == '\0' && by_new && !other) return likely_if(true, Link::bad_alloc);
  if (e.has(session::kLinkBadAlloc) && e.is_own_bad_alloc())
    return {Link::bad_alloc, Certainty::possible};
  if (e.has(session::kLinkBadAlloc)) {
    const bool thrown_there = by_new && !other;
    return {Link::bad_alloc, thrown_there ? Certainty::proven : Certainty::likely};
  }
  if (e.has(session::kLinkHandling)) return {Link::during_bad_alloc, Certainty::likely};
  if (e.has(session::kLinkOnFailure)) return {Link::failure_path, Certainty::likely};
  if (e.has(session::kLinkSaysMemory)) return likely_if(e.is_soon(), Link::memory_exception);
  const bool excluded = e.has(session::kLinkChecked) || e.has(session::kLinkRegardless) ||
                        (by_new && e.link.exception[0] != '\0');
  if (excluded) return {Link::other_exception, Certainty::likely};
  if (e.few_served()) return {Link::shortly_after, Certainty::possible};
  return likely_if(e.many_served() && !e.is_in_caller(), Link::other_exception);
}

// The program ended itself: abort(), raise(), a failed assertion; or it divided by 0. Many requests
// are no proof that it went on: a report with a backtrace takes thousands.
Ruling rule_on_abort(const Evidence& e) noexcept {
  if (e.has(session::kLinkHeapCorruption) && e.has(session::kLinkOnFailure))
    return likely_if(e.has(session::kLinkDoubleFree), Link::failure_damage);
  // A NULL is no damage: the pointer is what it was before the call.
  if (e.has(session::kLinkHeapCorruption) && e.has(session::kLinkArgument))
    return likely_if(e.few_served(), Link::not_set);
  if (e.has(session::kLinkHeapCorruption)) return {Link::heap_corruption, Certainty::likely};
  if (e.is_signal(SIGFPE) && e.has(session::kLinkDerived))
    return {Link::divided, Certainty::likely};
  if (e.crash_has(session::kCrashTerminate)) return rule_on_exception(e);
  if (e.has(session::kLinkOnFailure)) return {Link::failure_path, Certainty::likely};
  if (e.has(session::kLinkBadAlloc) || e.has(session::kLinkHandling))
    return {Link::during_bad_alloc, Certainty::likely};
  if (e.crash_has(session::kCrashSucceededSince)) return {Link::succeeded_since, Certainty::likely};
  if (e.has(session::kLinkRegardless)) return {Link::handled, Certainty::likely};
  if (e.few_served()) return {Link::shortly_after, Certainty::possible};
  if (e.was_caught()) return likely_if(e.many_served(), Link::handled);
  return likely_if(e.many_served() && !e.is_in_caller(), Link::much_later);
}

}  // namespace

bool fails_with_minus_one(const Failure& failure) noexcept {
  return function_of(static_cast<Api>(failure.api)).failed == Failed::minus_one_pointer;
}

Ruling ruling_of(const session::View& view) noexcept {
  const session::Header& header = view.header();
  const Crash& crash = header.crash;
  if (crash.sender_pid != 0 && crash.sender_pid != header.pid)
    return {Link::sent, Certainty::proven};
  Failure failure{};
  const bool failed = crash.failure != 0 && crash.failure_time_ns != 0 &&
                      crash.failure_time_ns <= crash.time_ns &&  // else forged
                      view.read(session::TableId::failures, crash.failure, failure);
  if (!failed) return {};
  const Evidence evidence{crash, header.crash_link, failure};
  return evidence.is_fault() ? rule_on_fault(evidence) : rule_on_abort(evidence);
}

}  // namespace oomrec::verdict
