// What happened, on what evidence: computed by this one function over stored evidence, for writer,
// launcher and readers alike.
#pragma once

#include <cstdint>
#include <string_view>

#include "recorder/session/view.h"

namespace oomrec::bundle {

inline constexpr unsigned kMaxEvidence = 6;

struct Verdict {
  VerdictCode code = VerdictCode::unknown;
  char summary[256] = {};
  char evidence[kMaxEvidence][160] = {};
  unsigned evidence_count = 0;
  LimitKind limit = LimitKind::none;
  std::uint64_t limit_bytes = 0;
  std::uint64_t limit_used_bytes = 0;
};

// The first that explains the refusal wins: a limit in force that live + request exceeds (soft,
// RLIMIT_DATA, RLIMIT_AS), then request_too_large (more than RAM + swap, or than the address
// space), then allocation_failed. `failure` 0: by trigger alone (requested, simulated, unknown).
// `reason`: the words given with a request. `outcome`: of the process, as in metadata.json; for a
// kill.
Verdict verdict_of(const session::View&, Trigger, std::uint32_t failure,
                   std::string_view reason = {}, std::string_view outcome = {}) noexcept;

}  // namespace oomrec::bundle
