// The episode that a bundle belongs to: the other bundles that tell of the same.
#pragma once

#include <string>

#include "tools/base/json.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::print {

// {"root", "role", "bundles": [{"bundle", "role", "verdict", "outcome"}…], "job_outcome"}: from the
// bundles beside this one. `job_outcome`: how the process ended that the root's death ended. Null
// for a recording without a bundle, and for a merged one.
Json episode_json(const bundles::Source&);

// Lines of the other bundles; empty if there are none.
std::string episode_text(const Json& episode, const bundles::Source&);

// "its job ended with exit status 1"; empty: not known.
std::string job_outcome_text(const Json& episode);

}  // namespace oomrec::tools::print
