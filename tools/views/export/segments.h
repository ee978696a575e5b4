// Memory as PyTorch's snapshots have it: segments, of which blocks are given to somebody or free.
//
// What a driver gave is a segment. PyTorch's blocks lie inside of its own; another's segment is
// one block. The host is a device of its own, behind the GPUs: there, neighbouring blocks of the
// heap make up a segment, and a counted mapping is one.
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
  std::vector<SegmentBlock> blocks;  // in order; they fill it
};

// How many GPUs are before the host.
std::size_t host_index(const recording::Recording&);

// The number of an entry in `devices`; 0 where it is not known.
std::size_t device_index(const recording::Recording&, std::uint32_t entry);

// Whether PyTorch's caching allocator took a segment from the driver, by the function that it was
// recorded from and the stack: in a snapshot of PyTorch's all are its own.
bool is_taken_by_torch(const recording::Recording&, Api, std::uint32_t node);

// In order of device and address. Of a sampled recording the blocks that are in it.
std::vector<Segment> segments_of(const recording::Recording&);

}  // namespace oomrec::tools::views
