// What bounds this process, as read at a failure.
#pragma once

#include "common/limits/ceilings.h"
#include "common/session/layout.h"
#include "recorder/state/request.h"

namespace oomrec::recorder {

// Failures within 100 ms may share what was read, but for the memory that the process uses. A
// failure with a bundle reads all of it now.
enum class EvidenceFrom : std::uint8_t { cache, now };

struct Evidence {
  limit::Ceilings ceilings;
  // Only what may explain this failure, if it was the system's.
  session::CountedLimits counted;
  session::MemoryPools pools;
};

// `error`: an errno; 0 where the recorder let the request fail.
Evidence read_evidence(InHook, const Request&, int error, std::uint64_t now_ns,
                       EvidenceFrom) noexcept;

// Whether all memory that is mapped from now on is locked (MCL_FUTURE), and so counts against
// RLIMIT_MEMLOCK.
void set_future_is_locked(bool) noexcept;

void reset_evidence_after_fork() noexcept;

}  // namespace oomrec::recorder
