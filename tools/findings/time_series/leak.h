// Judges from samples alone whether memory leaks. With a recording's stacks,
// tools/findings/leaks knows better.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tools/findings/time_series/statistics.h"

namespace oomrec::tools::findings {

// Why a series is considered a leak.
enum class LeakSign {
  rising,     // more than 70 % of the steps go up (high: more than 90 %)
  spikes,     // a value is more than three standard deviations above the mean
  not_freed,  // the mean of the last five is more than 1.5 × the mean of the first five
};
std::string_view word_of(LeakSign sign);

struct LeakFinding {
  LeakSign sign = LeakSign::rising;
  Severity severity = Severity::none;
  double figure = 0;  // share of steps; deviations; ratio
};

inline constexpr std::size_t kFewestOfLeak = 10;  // samples

// Empty for fewer samples than kFewestOfLeak.
std::vector<LeakFinding> leak_signs_of(const Series& series);

// A function whose calls leave memory behind.
struct FunctionLeak {
  double mean_bytes = 0;   // per call
  double total_bytes = 0;  // above 100 MiB; critical: above 1 GiB
  double grown_share = 0;  // share of calls that added memory; above 0.1
  Severity severity = Severity::none;
};
// `growth_bytes`: the bytes that each call added. Needs three calls.
std::optional<FunctionLeak> function_leak_of(std::span<const double> growth_bytes);

}  // namespace oomrec::tools::findings
