// The figures of a job: its GPUs, and its memory over time.
#pragma once

#include <deque>

#include "tools/bundles/ranks/combined_names.h"
#include "tools/recording/reading/image.h"

namespace oomrec::tools::bundles {

// Also sets the parts' `devices`.
void add_combined_devices(recording::Image& image, std::deque<RankPart>& parts);

// Live device blocks, which determine a holder's device. The parts' `holders` must be set.
void add_combined_device_blocks(recording::Image& image, const std::deque<RankPart>& parts);

// Memory of a job over time: at each moment, the sum of what every rank held at its own latest
// moment before.

// Adds points, device points, checkpoints and the spaces' peaks. The parts' `holders` and `devices`
// must be set.
void add_combined_over_time(recording::Image& image, const std::deque<RankPart>& parts);

}  // namespace oomrec::tools::bundles
