// The largest holders over time, from the recorder's ticks: at most 256 checkpoints, evenly
// thinned, with the 256 largest holders each.
//
// All checkpoints but the last contain published bytes only. A thread publishes its changes ten
// times a second, and whenever they exceed 64 KiB.
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
  std::uint64_t time_ns = 0;                            // session clock
  std::array<std::uint64_t, kSpaceCount> live_bytes{};  // of all holders, in usable bytes
  // Largest first, without device address space. A holder that is missing held less than the
  // smallest one here, or nothing.
  std::vector<CheckpointRow> largest;
};

// Sorted by time. The last one is the end of the recording, with all holders and exact figures.
std::vector<Checkpoint> checkpoints_of(const Recording&);

}  // namespace oomrec::tools::recording
