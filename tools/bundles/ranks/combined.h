// Combines the recordings of a job into one that every command reads. The outermost frame of a
// stack is the rank.
//
// Totals, holders and the time line are sums over the ranks. Failures and marks are those of all
// ranks, on the job's clock. A rank that has ended counts with what it held last. Blocks, events,
// limits and health are left out: their sum has no meaning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tools/bundles/ranks/job.h"

namespace oomrec::tools::bundles {

struct CombinedRecording {
  std::shared_ptr<const std::byte> bytes;
  std::uint64_t count = 0;
  std::uint32_t failure = 0;  // the failure of the first rank that failed; 0: none
};

// Cost: 64 ranks with 2,000 stacks and full time lines each, under a second.
CombinedRecording combined_recording(const Job& job);

}  // namespace oomrec::tools::bundles
