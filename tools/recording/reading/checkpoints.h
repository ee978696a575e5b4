// The largest holders over time, as the recorder's ticks saw them: at most 256 checkpoints, evenly
// thinned, with the 256 largest holders each.
//
// Of a checkpoint but the last, bytes are what holders had been told by then: a thread tells them
// ten times a second, and when it has more than 64 KiB to tell.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tools/recording/reading/recording.h"

namespace oomrec::tools::recording {

struct CheckpointRow {
  std::uint32_t holder = 0;  // entry in `holders`
  std::uint64_t live_bytes = 0;
};

struct Checkpoint {
  std::uint64_t time_ns = 0;                            // of the session's clock
  std::array<std::uint64_t, kSpaceCount> live_bytes{};  // of all holders, in usable bytes
  // The largest first, address space of devices left out. A holder that is not here held less than
  // the smallest that is, or nothing.
  std::vector<CheckpointRow> largest;
};

// In order of time. The last is the recording's end: all holders, exact.
std::vector<Checkpoint> checkpoints_of(const Recording&);

}  // namespace oomrec::tools::recording
