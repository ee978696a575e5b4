// How a process ended, from all that is known of it: the outcome that its bundles get, and what
// they tell of its death.
#pragma once

#include <cstdint>
#include <string>

#include "common/session/view.h"
#include "tools/deaths/watch.h"

namespace oomrec::tools::deaths {

// A death later than this after a refusal has other reasons than that.
inline constexpr std::uint64_t kFollowsWithinNs = 10'000'000'000;

struct Ending {
  OutcomeKind outcome = OutcomeKind::unknown;
  std::int32_t value = 0;  // exit status or signal
  bool killed = false;     // it did not end by itself: `death` is filled in, `verdict` is on it
  session::Death death{};
  VerdictCode verdict = VerdictCode::unknown;

  // As in metadata.json.
  std::string word() const;
};

// Of a process that is gone. Of one that was killed the kernel's log is read.
Ending ending_of(const session::View& view, const Watched& watched);

// Whether it came within kFollowsWithinNs of that moment of the session's clock: as far as the time
// of the death is known, else by the last tick before it.
bool follows(const session::View& view, const Ending& ending, std::uint64_t monotonic_ns);

}  // namespace oomrec::tools::deaths
