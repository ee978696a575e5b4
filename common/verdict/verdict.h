// What happened, on what evidence: computed by this one function over stored evidence, for writer,
// launcher and readers alike.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/session/view.h"

namespace oomrec::verdict {

inline constexpr unsigned kMaxEvidence = 12;

struct Verdict {
  VerdictCode code = VerdictCode::unknown;
  char summary[256] = {};
  char evidence[kMaxEvidence][320] = {};
  unsigned evidence_count = 0;
  LimitKind limit = LimitKind::none;
  std::uint64_t limit_bytes = 0;
  std::uint64_t limit_used_bytes = 0;
};

// `failure` 0: nothing was refused, or that is not why. `reason`: the words given with a request.
// `outcome`: of the process, as in metadata.json. `death`: what was found out about it, `health`:
// how it fares, `child`: the worker that it ended for; null: as the recording says. Which evidence
// leads to which code: docs/deaths.md.
void explain(Verdict& verdict, const session::View&, Trigger, std::uint32_t failure,
             std::string_view reason, std::string_view outcome, const session::Death* death,
             const session::Health* health = nullptr,
             const session::ChildDeath* child = nullptr) noexcept;

// The same where the stack has room for it.
inline Verdict verdict_of(const session::View& view, Trigger trigger, std::uint32_t failure,
                          std::string_view reason = {}, std::string_view outcome = {},
                          const session::Death* death = nullptr) noexcept {
  Verdict verdict;
  explain(verdict, view, trigger, failure, reason, outcome, death);
  return verdict;
}

// Whether the crash in a session's header follows from a refusal: the same thread's, a short while
// before, of a call that has not been served since; and nobody else sent the signal.
bool follows_refusal(const session::Header&) noexcept;

// Killed by the kernel for memory: then the outcome is `oom_killed`.
constexpr bool is_kernel_kill(VerdictCode code) noexcept {
  return code == VerdictCode::cgroup_oom_kill || code == VerdictCode::system_oom_kill;
}

// A death that is told in place of a refusal before it.
constexpr bool outranks_refusal(VerdictCode code) noexcept {
  return is_kernel_kill(code) || code == VerdictCode::shared_memory_full;
}

// A death for which memory is the reason, or probably.
constexpr bool is_death_by_memory(VerdictCode code) noexcept {
  return outranks_refusal(code) || code == VerdictCode::killed_near_limit ||
         code == VerdictCode::terminated_under_pressure;
}

// What a worker died of may be why its parent ended: lack of memory, by whatever signal. Else
// there is no phrase for it.
std::string_view fatal_to_parent(VerdictCode) noexcept;

}  // namespace oomrec::verdict
