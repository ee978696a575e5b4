// The GPUs of a job. One that several ranks use is one; what is cuda:0 on every host becomes
// cuda:0, cuda:1 … of the job, and its name says whose it was.
#pragma once

#include <deque>

#include "tools/analysis/image.h"
#include "tools/ranks/combined_rank.h"

namespace oomrec::tools {

// Fills in the parts' devices.
void add_combined_devices(Image& image, std::deque<RankPart>& parts);

// Live blocks there, which tell a holder's device; the parts have their holders.
void add_combined_device_blocks(Image& image, const std::deque<RankPart>& parts);

}  // namespace oomrec::tools
