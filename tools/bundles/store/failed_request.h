// The JSON of the failed request, and of one that was being made.
#pragma once

#include <string>

#include "tools/base/json.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

// The source's failed allocation, if it has one.
struct FailureDetails {
  bool exists = false;
  session::Failure failure{};
  session::Thread thread{};

  explicit FailureDetails(const Source&);

  // Empty if PyTorch's allocator gave up: it has no error code.
  std::string error() const;
};

Json request_json(const Source&);  // null: no request failed
// The largest request that a thread was making when the process was killed; null: none is known.
Json in_flight_json(const Source&);

}  // namespace oomrec::tools::bundles
