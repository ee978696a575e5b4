// The other processes that a bundle tells of: its group, and the largest others of its cgroup.
#pragma once

#include <string>

#include "common/verdict/verdict.h"
#include "tools/base/json.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::print {

// What processes.json says, with what is known since: the bundles that were made of members later,
// and how those ended. {"processes": […], "others": […], "left_out": N}, rows as in
// docs/bundle-format.md; the arrays are null where the bundle does not say.
Json company_of(const bundles::Source&);

// Lines of the group, the process itself first and then who holds most; empty where it is alone.
// `full`: every process.
std::string group_text(const Json& company, bool full);

// Lines of the others, where they may have had a part in it: under a limit, or after a kill.
std::string others_text(const Json& company, const bundles::Source&, const verdict::Verdict&);

}  // namespace oomrec::tools::print
