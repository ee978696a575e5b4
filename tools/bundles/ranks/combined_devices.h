// The GPUs of a job. A GPU that several ranks share is one device. The cuda:0 of each host becomes
// cuda:0, cuda:1 … of the job; the device's name then says which rank's it was.
#pragma once

#include <deque>

#include "tools/bundles/ranks/combined_rank.h"
#include "tools/recording/reading/image.h"

namespace oomrec::tools::bundles {

// Also sets the parts' `devices`.
void add_combined_devices(recording::Image& image, std::deque<RankPart>& parts);

// Live device blocks, which determine a holder's device. The parts' `holders` must be set.
void add_combined_device_blocks(recording::Image& image, const std::deque<RankPart>& parts);

}  // namespace oomrec::tools::bundles
