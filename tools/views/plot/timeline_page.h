// The time line of a recording as a page: charts, then failures and marks.
#pragma once

#include "tools/recording/reading/timeline.h"
#include "tools/views/screen/picture.h"

namespace oomrec::tools::views {

// `size`: of each chart.
Picture timeline_picture(const recording::Timeline& timeline, const recording::Recording& recording,
                         Size size, Charset charset);

}  // namespace oomrec::tools::views
