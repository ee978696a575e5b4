// Does memory leak, by samples alone? Where a recording tells stacks, tools/leaks knows better.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tools/findings/time_series/statistics.h"

namespace oomrec::tools::findings {

// Why a series is taken for a leak.
enum class LeakSign {
  rising,     // more than 70 % of the steps go up (high: more than 90 %)
  spikes,     // a value more than three standard deviations above the mean
  not_freed,  // the last five are in the mean more than 1.5 × the first five
};
std::string_view word_of(LeakSign sign);

struct LeakFinding {
  LeakSign sign = LeakSign::rising;
  Severity severity = Severity::none;
  double figure = 0;  // share of steps; deviations; ratio
};

inline constexpr std::size_t kFewestOfLeak = 10;  // samples

// Empty also of fewer samples than that.
std::vector<LeakFinding> leak_signs_of(const Series& series);

// What a function's calls (or looks at it) added, call by call, in bytes.
struct FunctionLeak {
  double mean_bytes = 0;   // a call
  double total_bytes = 0;  // more than 100 MiB; critical: more than 1 GiB
  double grown_share = 0;  // of the calls; more than 0.1
  Severity severity = Severity::none;
};
// At least three calls.
std::optional<FunctionLeak> function_leak_of(std::span<const double> growth_bytes);

}  // namespace oomrec::tools::findings
