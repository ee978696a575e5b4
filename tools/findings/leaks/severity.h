// Severity: how much has leaked, and how soon a limit is reached at this rate.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/findings/leaks/detect.h"
#include "tools/recording/reading/timeline.h"

namespace oomrec::tools::findings {

// The limit that is reached first if the leaks continue at their rate.
struct Reach {
  std::string name;  // "--limit", "cgroup", "RAM", "--limit-gpu cuda:0"
  std::uint64_t bytes = 0;
  double seconds = 0;
};
std::optional<Reach> first_reached(const Leaks& leaks, const recording::Recording& recording,
                                   const recording::Timeline& timeline);

// "critical": a limit is reached within an hour, or 1 GiB has leaked. "high": within a day, or 100
// MiB. "medium": 10 MiB. "low": less. "none": no leak.
std::string_view severity_of(const Leaks& leaks, const std::optional<Reach>& reach);

}  // namespace oomrec::tools::findings
