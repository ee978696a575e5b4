// A PyTorch snapshot's trace as the ring of a lane: the latest events, as far as a ring goes.
#pragma once

#include <vector>

#include "tools/formats/pytorch/stack_nodes.h"
#include "tools/formats/pytorch/trace.h"

namespace oomrec::tools::formats {

// `entries`: of the devices, by number. A refusal's address is its entry in `failures`.
void write_ring(const std::vector<TraceEvent>& trace, const std::vector<std::uint32_t>& entries,
                StackNodes& stacks, recording::Image& image, session::Lane& lane);

}  // namespace oomrec::tools::formats
