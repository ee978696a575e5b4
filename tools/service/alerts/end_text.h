// Describes in words how a process that died for lack of memory ended.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/session/vocabulary.h"

namespace oomrec::tools::service {

// "was ended by SIGKILL after a refusal at its soft limit". The outcome and the verdict are
// independent facts: a process may survive a failure and be killed for another reason later.
// `outcome`: as in metadata.json. A verdict that is not proven says so.
std::string end_text(std::string_view outcome, VerdictCode verdict,
                     std::optional<Certainty> certainty = std::nullopt);

}  // namespace oomrec::tools::service
