// How bad it is: how much has leaked, and how soon a limit is reached at this rate.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/findings/leaks/detect.h"
#include "tools/recording/reading/timeline.h"

namespace oomrec::tools::findings {

// The limit that the leaks reach first, if they go on as they do.
struct Reach {
  std::string name;  // "--limit", "cgroup", "RAM", "--limit-gpu cuda:0"
  std::uint64_t bytes = 0;
  double seconds = 0;
};
std::optional<Reach> first_reached(const Leaks& leaks, const recording::Recording& recording,
                                   const recording::Timeline& timeline);

// "critical" where a limit is reached within an hour or 1 GiB has leaked, "high" within a day or
// 100 MiB, "medium" from 10 MiB on, else "low"; "none" where nothing leaks.
std::string_view severity_of(const Leaks& leaks, const std::optional<Reach>& reach);

}  // namespace oomrec::tools::findings
