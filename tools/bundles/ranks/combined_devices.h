// The GPUs of a job. One that several ranks use is one; what is cuda:0 on every host becomes
// cuda:0, cuda:1 … of the job, and its name says whose it was.
#pragma once

#include <deque>

#include "tools/bundles/ranks/combined_rank.h"
#include "tools/recording/reading/image.h"

namespace oomrec::tools::bundles {

// Fills in the parts' devices.
void add_combined_devices(recording::Image& image, std::deque<RankPart>& parts);

// Live blocks there, which tell a holder's device; the parts have their holders.
void add_combined_device_blocks(recording::Image& image, const std::deque<RankPart>& parts);

}  // namespace oomrec::tools::bundles
