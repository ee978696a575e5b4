// The verdict: what happened, and the evidence. The writer, the launcher and all readers compute it
// with one function from stored evidence.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/facts/verdict.h"
#include "common/session/view.h"
#include "common/text/text.h"
#include "common/verdict/kinds.h"

namespace oomrec::verdict {

// No process has more (x86-64 with page tables of four levels).
inline constexpr std::uint64_t kAddressSpaceBytes = std::uint64_t{1} << 47;

// The reason of a bundle that --dump-at-exit writes.
inline constexpr std::string_view kReasonAtExit = "at the end of the process";

using facts::Verdict;

// What a verdict explains. `end`, `health` and `child` are null if the recording has them.
struct Event {
  Trigger trigger = Trigger::none;
  std::uint32_t failure = 0;      // entry; 0: no allocation failed, or that is not the reason
  std::string_view reason = {};   // the words given with a request
  std::string_view outcome = {};  // of the process, as in metadata.json
  const session::EndEvidence* end = nullptr;   // evidence about its end
  const session::Health* health = nullptr;     // its last reading
  const session::ChildDeath* child = nullptr;  // the worker whose death ended it
};

// docs/deaths.md lists which evidence leads to which code.
void explain(Verdict&, const session::View&, const Event&) noexcept;

// The same, for callers with enough stack for a Verdict.
inline Verdict verdict_of(const session::View& view, Trigger trigger, std::uint32_t failure,
                          std::string_view reason = {}, std::string_view outcome = {},
                          const session::EndEvidence* end = nullptr) noexcept {
  Verdict verdict;
  explain(verdict, view, {trigger, failure, reason, outcome, end});
  return verdict;
}

// "numpy asked malloc for 412.0 MiB": how the summary of a failed request begins.
void add_request(text::Text&, const session::View&, const session::Failure&) noexcept;

// Whether the crash in a session's header follows from the failed request of its thread, at least
// so certainly (crash_ruling.h).
bool follows_failure(const session::View&, Certainty at_least = Certainty::possible) noexcept;

// Whether it does not, although a request of its thread had failed.
bool is_separate_crash(const session::View&) noexcept;

// Whether the kernel's log names it as killed in a full cgroup, but the one in which it was last
// seen counts no kill since: it had been moved, and its last readings are of a cgroup that does not
// matter.
bool died_in_another_cgroup(const session::Death&) noexcept;

// The reason that the recorder gives for a bundle about an exception which the process got from
// another one, as a pool's worker sends it. The verdict reads it.
inline constexpr std::string_view kReasonOfWorker = "raised in another process";

}  // namespace oomrec::verdict
