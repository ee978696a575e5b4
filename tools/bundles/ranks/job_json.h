// A job in JSON: ranks.json of a merged bundle, and the verdict on all of it.
#pragma once

#include <functional>
#include <string>

#include "common/verdict/verdict.h"
#include "tools/base/json.h"
#include "tools/bundles/ranks/job.h"

namespace oomrec::tools::bundles {

// As docs/bundle-format.md has it. `bundle_of`: what stands as a rank's bundle.
Json job_json(const Job& job, const std::function<std::string(const JobRank&)>& bundle_of);

// That of the first rank in trouble, as the job's; else that there was none.
verdict::Verdict verdict_of(const Job& job);

}  // namespace oomrec::tools::bundles
