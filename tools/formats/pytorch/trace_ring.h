// Writes a PyTorch snapshot's trace to the ring of a lane: as many of the latest events as fit.
#pragma once

#include <vector>

#include "tools/formats/pytorch/stack_nodes.h"
#include "tools/formats/pytorch/trace.h"

namespace oomrec::tools::formats {

// `entries`: the entry of each device, by its number. The address of a failure event is its entry
// in `failures`.
void write_ring(const std::vector<TraceEvent>& trace, const std::vector<std::uint32_t>& entries,
                StackNodes& stacks, recording::Image& image, session::Lane& lane);

}  // namespace oomrec::tools::formats
