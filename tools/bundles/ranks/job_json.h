// The JSON of a job (ranks.json of a merged bundle), and its verdict.
#pragma once

#include <functional>
#include <string>

#include "common/verdict/verdict.h"
#include "tools/base/json.h"
#include "tools/bundles/ranks/job.h"

namespace oomrec::tools::bundles {

// As in docs/bundle-format.md. `bundle_of`: the value of a rank's `bundle`.
Json job_json(const Job& job, const std::function<std::string(const JobRank&)>& bundle_of);

// The verdict of the first rank that failed; `unknown` if none did.
verdict::Verdict verdict_of(const Job& job);

}  // namespace oomrec::tools::bundles
