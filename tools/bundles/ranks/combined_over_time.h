// Memory of a job over time: at each moment the sum of what every rank held then, which is what it
// held at its own last moment before.
#pragma once

#include <deque>

#include "tools/bundles/ranks/combined_rank.h"
#include "tools/recording/reading/image.h"

namespace oomrec::tools::bundles {

// Points, points of devices, checkpoints, and the spaces' peaks; the parts have their holders and
// devices.
void add_combined_over_time(recording::Image& image, const std::deque<RankPart>& parts);

}  // namespace oomrec::tools::bundles
