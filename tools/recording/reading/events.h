// The latest events of all threads, from their ring buffers.
#pragma once

#include <vector>

#include "tools/recording/reading/recording.h"

namespace oomrec::tools::recording {

// Allocations, frees and failures, sorted by time. Within a millisecond, the events of one thread
// are in order; those of different threads may not be. A sampled recording has the sampled events.
std::vector<session::Event> events_of(const Recording&);

}  // namespace oomrec::tools::recording
