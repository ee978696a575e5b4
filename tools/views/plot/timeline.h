// The time line of a recording: as charts, as a page and as JSON (docs/commands/timeline.md).
#pragma once

#include <cstdint>
#include <vector>

#include "tools/base/json.h"
#include "tools/recording/reading/timeline.h"
#include "tools/views/plot/chart.h"
#include "tools/views/screen/picture.h"

namespace oomrec::tools::views {

// `size`: of each chart.
Picture timeline_picture(const recording::Timeline& timeline, const recording::Recording& recording,
                         Size size, Charset charset);

// The time line of a recording as charts: one for the host, one for each device.

inline constexpr std::string_view kFailureSign = "×";
inline constexpr std::string_view kMarkSign = "▲";

// RSS and the live bytes of all spaces in the host's memory, with limits, failures and marks.
Chart host_chart(const recording::Timeline&, const recording::Recording&);

// The memory of a device that the process holds, and that all processes use.
Chart device_chart(const recording::Timeline&, const recording::Recording&, std::uint32_t device);

// Entries of the devices on the time line, in the order of their first use.
std::vector<std::uint32_t> devices_in(const recording::Timeline&);

// The time line as JSON: docs/commands/timeline.md.

Json moment_json(const recording::Moment&, const recording::Recording&);
Json limits_json(const recording::Timeline&, const recording::Recording&);
Json timeline_json(const recording::Timeline&, const recording::Recording&);

}  // namespace oomrec::tools::views
