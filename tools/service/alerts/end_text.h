// The end of a process that memory is the reason for, in words.
#pragma once

#include <string>
#include <string_view>

#include "common/session/vocabulary.h"

namespace oomrec::tools::service {

// "was ended by SIGKILL after a refusal at its soft limit". How it ended and what came before are
// two facts: a process may live on after a refusal, and be ended by somebody else. `outcome`: as in
// metadata.json.
std::string end_text(std::string_view outcome, VerdictCode verdict);

}  // namespace oomrec::tools::service
