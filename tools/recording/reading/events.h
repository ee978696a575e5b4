// The latest events of all threads, as far as their rings still hold them.
#pragma once

#include <vector>

#include "tools/recording/reading/recording.h"

namespace oomrec::tools::recording {

// Allocations, frees and refusals in order of time: within a millisecond those of one thread are in
// order, those of several are not. A sampled recording holds the events that were sampled.
std::vector<session::Event> events_of(const Recording&);

}  // namespace oomrec::tools::recording
