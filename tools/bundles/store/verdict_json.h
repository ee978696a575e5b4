// What happened, as its parts stand in JSON: verdict, request, limit, the worker it ended for.
#pragma once

#include <string>

#include "common/verdict/verdict.h"
#include "tools/base/json.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

// The request that was refused, if one was.
struct Refused {
  bool there = false;
  session::Failure failure{};
  session::Thread thread{};

  explicit Refused(const Source&);

  // Empty: PyTorch's allocator gave up, which has no code.
  std::string error() const;
};

Json verdict_json(const verdict::Verdict&);

// The verdict that metadata.json holds, for a recording that none can be computed of: a job's.
verdict::Verdict stored_verdict(const Json& metadata);

Json limit_json(const verdict::Verdict&);
Json request_json(const Source&);  // null: nothing was refused
Json child_json(const Source&);    // null: it ended for no worker

}  // namespace oomrec::tools::bundles
