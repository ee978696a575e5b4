// Shapes in a series of bytes over time: spikes, steps, a period, a trend. Judgements of numbers
// alone; each has its threshold here and its reason on docs/commands/analyze.md.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tools/findings/time_series/statistics.h"

namespace oomrec::tools::findings {

inline constexpr std::size_t kFewestOfPattern = 10;  // samples; fewer have no shape

// Values beyond the third quartile + 1.5 interquartile ranges.
struct Spikes {
  std::size_t count = 0;
  double above_bytes = 0;    // where a spike begins
  double highest_bytes = 0;  // the highest of them
  double highest_at_seconds = 0;

  Severity severity() const { return count >= 5 ? Severity::critical : Severity::medium; }
};
// What is less than 1 % above the third quartile is none: a series may be constant but for a few
// bytes.
std::optional<Spikes> spikes_of(const Series& series);

// Changes by more than 20 % from one sample to the next, in more than 10 % of the samples.
struct Steps {
  std::size_t count = 0;
  double largest_bytes = 0;  // signed

  static Severity severity() { return Severity::medium; }
};
std::optional<Steps> steps_of(const Series& series);

// The series, less its trend, cut into chunks of one length: neighbours that correlate by more than
// 0.7 in the mean are a period.
struct Period {
  double seconds = 0;
  double correlation = 0;

  static Severity severity() { return Severity::low; }
};
// At least four chunks, each with about half of the whole range: a smooth curve cut into small
// pieces correlates as well, and has no period.
std::optional<Period> period_of(const Series& series);

// A line upwards that chance does not explain: slope > 0, |r| > 0.5, p < 0.05.
struct Trend {
  double bytes_per_second = 0;
  double r = 0, p = 1;

  Severity severity() const {
    return bytes_per_second > 1024 * 1024 ? Severity::high : Severity::medium;
  }
};
std::optional<Trend> trend_of(const Series& series);

// Where a growth from sample to sample, without a fall, first came to max(64 MiB, 10 % of the
// peak): the second at which that growth began.
std::optional<double> growth_began_at(const Series& series);

}  // namespace oomrec::tools::findings
