// The trigger for a bundle of a recording that has none yet, from the session alone.
#pragma once

#include <cstdint>
#include <optional>

#include "common/session/view.h"
#include "common/session/vocabulary.h"

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

}  // namespace oomrec::tools::bundles
