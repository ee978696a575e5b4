// The time line of a recording as charts: one of the host, one of each device.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/recording/reading/timeline.h"
#include "tools/views/plot/chart.h"

namespace oomrec::tools::views {

inline constexpr std::string_view kRefusalSign = "×";
inline constexpr std::string_view kMarkSign = "▲";

// Live bytes of all spaces that lie in the host's memory, RSS, its limits, refusals and marks.
Chart host_chart(const recording::Timeline&, const recording::Recording&);

// What the process holds on a device, and what all processes do.
Chart device_chart(const recording::Timeline&, const recording::Recording&, std::uint32_t device);

// Entries of the devices that the time line tells of, in the order in which they were met.
std::vector<std::uint32_t> devices_in(const recording::Timeline&);

}  // namespace oomrec::tools::views
