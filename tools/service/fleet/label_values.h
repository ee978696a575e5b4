// The possible values of the counters' labels. Each series is exported at 0 before its first event:
// Prometheus sees no increase in a series that begins at 1.
#pragma once

#include <string_view>
#include <vector>

#include "common/session/functions.h"

namespace oomrec::tools::service {

// The functions that can fail for lack of memory; those of a GPU driver form sets of their own. A
// failure of any other function counts as `other`.
enum class ApiSet { host, cuda, hip };
const std::vector<Api>& failable_apis(ApiSet);
ApiSet set_of(Api);
std::string_view api_label(Api);  // Api::none: "other"

const std::vector<Trigger>& counted_triggers();

// The verdicts on a process that has ended. `exited`: by itself, whatever was reported before.
const std::vector<VerdictCode>& death_verdicts();

}  // namespace oomrec::tools::service
