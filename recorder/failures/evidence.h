// What bounds this process, read at a refusal and kept for those that follow within 100 ms.
#pragma once

#include "common/limits/ceilings.h"
#include "common/session/layout.h"
#include "recorder/state/request.h"

namespace oomrec::recorder {

struct Evidence {
  limit::Ceilings ceilings;
  session::CountedLimits counted;  // only what may explain this refusal, if the system made it
};

// `error`: an errno, 0 where the recorder refused. `fresh`: what was kept is too old.
Evidence read_evidence(InHook, const Request&, int error, std::uint64_t now_ns,
                       bool fresh) noexcept;

// After a fork.
void forget_evidence() noexcept;

}  // namespace oomrec::recorder
