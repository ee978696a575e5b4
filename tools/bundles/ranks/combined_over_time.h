// Memory of a job over time: at each moment, the sum of what every rank held at its own latest
// moment before.
#pragma once

#include <deque>

#include "tools/bundles/ranks/combined_rank.h"
#include "tools/recording/reading/image.h"

namespace oomrec::tools::bundles {

// Adds points, device points, checkpoints and the spaces' peaks. The parts' `holders` and `devices`
// must be set.
void add_combined_over_time(recording::Image& image, const std::deque<RankPart>& parts);

}  // namespace oomrec::tools::bundles
