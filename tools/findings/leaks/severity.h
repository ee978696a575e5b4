// How bad a leak is, and what to do about it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

// Suggestions for fixing a leak: rules over its stack.

// The text of the first rule that matches. The last rule always does.
std::string suggestion_of(const Leak& leak, const recording::Stacks& stacks,
                          const recording::Locations& locations);

// The suggestions for all leaks, in their order, without duplicates.
std::vector<std::string> suggestions_of(const Leaks& leaks, const recording::Stacks& stacks,
                                        const recording::Locations& locations);

}  // namespace oomrec::tools::findings
