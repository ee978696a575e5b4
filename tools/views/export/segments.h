// Memory in the form of PyTorch's snapshots: segments, divided into used and free blocks.
//
// Each allocation from a driver is a segment. PyTorch's segments contain PyTorch's blocks; any
// other segment is a single block. The host is an additional device after the GPUs. There, a
// segment is a run of neighbouring heap blocks, or a counted mapping.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/recording/reading/recording.h"

namespace oomrec::tools::views {

struct SegmentBlock {
  std::uint64_t address = 0, bytes = 0;
  std::uint32_t node = 0;
  bool active = false;
};

struct Segment {
  std::size_t device = 0;  // as the driver numbers it; host_index(): the host
  std::uint64_t address = 0, bytes = 0;
  std::uint32_t node = 0;
  std::vector<SegmentBlock> blocks;  // by address; they fill the segment
};

// The host's device number: the number of GPUs.
std::size_t host_index(const recording::Recording&);

// The driver's number of an entry in `devices`; 0 if unknown.
std::size_t device_index(const recording::Recording&, std::uint32_t entry);

// Whether PyTorch's caching allocator requested the segment, by the allocating function and the
// stack. All segments in a PyTorch snapshot are PyTorch's.
bool is_pytorch_segment(const recording::Recording&, Api, std::uint32_t node);

// By device and address. A sampled recording lacks most small blocks.
std::vector<Segment> segments_of(const recording::Recording&);

}  // namespace oomrec::tools::views
