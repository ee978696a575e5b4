// How a process ended, from all available evidence: the outcome for its bundles, and the verdict on
// its death.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "common/session/view.h"
#include "tools/deaths/death_observer.h"

namespace oomrec::tools::deaths {

// A death later than this after a failure has another cause.
inline constexpr std::uint64_t kFollowsWithinNs = 10'000'000'000;

struct Ending {
  OutcomeKind outcome = OutcomeKind::unknown;
  std::int32_t value = 0;  // exit status or signal
  bool killed = false;     // it did not exit by itself: `evidence` and `verdict` are set
  session::EndEvidence evidence{};
  VerdictCode verdict = VerdictCode::unknown;

  const session::Death& death() const { return evidence.death; }

  // As in metadata.json.
  std::string outcome_text() const;
};

// How the kernel will report the end of a process that its parent has not waited for, and perhaps
// never will: as wait() would return it. Empty: it is no zombie. Of another user's the kernel may
// say 0.
std::optional<int> status_of_zombie(pid_t pid, std::uint64_t start_ticks);

// For a process that is gone. If it was killed, reads the kernel's log.
Ending ending_of(const session::View& view, const DeathObservation& observed);

// Whether the process ended within a time of a moment on the session's clock. If the time of death
// is unknown, uses the last tick instead.
bool follows(const session::View& view, const Ending& ending, std::uint64_t monotonic_ns,
             std::uint64_t within_ns = kFollowsWithinNs);

}  // namespace oomrec::tools::deaths
