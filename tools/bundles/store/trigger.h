// Why there is a bundle: its trigger, and the request for memory that failed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/session/view.h"
#include "common/session/vocabulary.h"
#include "tools/base/json.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {

// A request for memory that failed.
struct FailedRequest {
  std::uint32_t index = 0;    // entry in `failures`
  std::uint64_t last_ns = 0;  // time of its last repeat
  bool in_bundle = false;     // recorded in one, and the program did not recover from it
  Trigger trigger = Trigger::none;
};

// The one with the latest repeat. Ignores probes.
std::optional<FailedRequest> last_failed_request(const session::View& view);

session::State state_of(const session::View& view);

// The signal that the recorder's handler saw; 0: none.
int crash_signal(const session::View& view);

// Whether the process crashed because of a failed request and could not record that in a bundle.
bool crash_is_due(const session::View& view);

Trigger trigger_of(const session::View& view);

// The JSON of the failed request, and of one that was being made.

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
