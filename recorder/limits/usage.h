// Memory in use and memory left, for the program's own queries.
#pragma once

#include <cstdint>

#include "common/limits/health.h"
#include "common/session/vocabulary.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

struct SpaceUsage {
  Space space;
  std::uint64_t live_bytes, peak_bytes;  // usable bytes
  std::uint64_t allocated_bytes;         // since the start, as requested
  std::uint64_t live_count;
};

struct Usage {
  std::uint32_t spaces;      // in `space`
  std::uint64_t live_bytes;  // of the host's: heap and counted mappings
  std::uint64_t peak_bytes;  // likewise; their peaks may not have come together
  std::uint64_t rss_bytes;
  limit::LimitUsage limit;        // the host's nearest limit
  SpaceUsage space[kSpaceCount];  // the spaces ever used
};

// False: nothing is recorded. Takes about ten microseconds, more with hundreds of threads.
bool read_usage(InHook, Usage&) noexcept;

}  // namespace oomrec::recorder
