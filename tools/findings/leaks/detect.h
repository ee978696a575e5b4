// The leaks of a recording: stacks whose bytes grow over its checkpoints as growth.h judges.
//
// First each stack by itself, without the interpreter's functions; then, of those that do not grow
// by themselves, all together that one line or function asked for: a graph of tensors or a tree of
// objects is many small stacks. What the import system loads stays by design and is none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/findings/leaks/growth.h"
#include "tools/recording/analysis/stacks.h"
#include "tools/recording/reading/devices.h"

namespace oomrec::tools::findings {

struct Leak {
  recording::StackId stack = 0;    // of its stacks the one that holds most
  std::size_t stacks = 1;          // more: together they grow, each of them too little to tell
  recording::PlaceId subject = 0;  // the line or function that it is told by
  Space space = Space::heap;
  std::string device;  // "cuda:0", where all of it is on one; else empty
  bool estimated = false;
  Growth growth;
  std::uint64_t live_bytes = 0, live_count = 0;  // in the end
  double survivors = 0;                          // bytes held in the end ÷ ever allocated
  std::optional<double> oldest_s;                // age of the oldest block in the end
  double confidence = 0;                         // 0…1
};

struct DeviceGrowth {
  std::string device;
  Growth growth;
};

struct Leaks {
  std::size_t checkpoints = 0;
  double seconds = 0;                 // from the first checkpoint to the end
  std::vector<Leak> leaks;            // what grew most first
  std::vector<DeviceGrowth> devices;  // those on which all that the process holds grows

  bool can_tell() const { return checkpoints >= kFewestMoments; }
  bool detected() const { return !leaks.empty(); }
  // Of the spaces that add up; of PyTorch's tensors, which lie inside them, where no other grows.
  double bytes() const;
  double bytes_per_second() const;
};

Leaks leaks_of(const recording::Recording& recording, recording::Stacks& stacks,
               const recording::Places& places);

// "high", "medium" or "low".
std::string_view confidence_word(double confidence);

}  // namespace oomrec::tools::findings
