// Shapes of a series of numbers: leak, spikes, steps, period, trend.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tools/findings/time_series/statistics.h"

namespace oomrec::tools::findings {

inline constexpr std::size_t kFewestOfPattern = 10;  // samples; fewer show no pattern

// Values beyond the third quartile + 1.5 interquartile ranges.
struct Spikes {
  std::size_t count = 0;
  double above_bytes = 0;    // the threshold
  double highest_bytes = 0;  // the highest of them
  double highest_at_seconds = 0;

  Severity severity() const { return count >= 5 ? Severity::critical : Severity::medium; }
};
// A value less than 1 % above the third quartile is no spike: a series may be constant except for a
// few bytes.
std::optional<Spikes> spikes_of(const Series& series);

// Changes by more than 20 % from one sample to the next, in more than 10 % of the samples.
struct Steps {
  std::size_t count = 0;
  double largest_bytes = 0;  // signed

  static Severity severity() { return Severity::medium; }
};
std::optional<Steps> steps_of(const Series& series);

// The length of a period: the series, without its trend, is cut into chunks of that length, and
// neighbouring chunks have a mean correlation above 0.7.
struct Period {
  double seconds = 0;
  double correlation = 0;

  static Severity severity() { return Severity::low; }
};
// Needs four chunks, with a mean of half the range of the series. Small pieces of a smooth curve
// correlate, too, but are no period.
std::optional<Period> period_of(const Series& series);

// A significant upward line: slope > 0, |r| > 0.5, p < 0.05.
struct Trend {
  double bytes_per_second = 0;
  double r = 0, p = 1;

  Severity severity() const {
    return bytes_per_second > 1024 * 1024 ? Severity::high : Severity::medium;
  }
};
std::optional<Trend> trend_of(const Series& series);

// The second at which the first large growth began: an uninterrupted rise by max(64 MiB, 10 % of
// the peak).
std::optional<double> growth_began_at(const Series& series);

// Judges from samples alone whether memory leaks. With a recording's stacks,
// tools/findings/leaks knows better.

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
