// Decides from numbers alone whether a curve of held bytes grows like a leak.
//
// Only retained memory counts: for each moment, the minimum from then on. On that curve a sawtooth
// is flat, and so is memory that was freed later. The curve must rise in every quarter, and not
// much slower in its second half than in its first. This excludes a warm-up, a cache that levels
// off, and a single step. For leaks that begin late, the last three quarters, the last half and the
// last quarter are checked, too.
//
// The slope is the Theil–Sen estimator: the median of the slopes between all pairs of moments.
// Allocators and containers grow in steps, and a moment may catch a temporary buffer. Such outliers
// would distort least squares, but not the median. R² is the fit of that line to the held bytes.
#pragma once

#include <optional>
#include <vector>

namespace oomrec::tools::findings {

struct HeldCurve {
  std::vector<double> seconds, bytes;  // sorted by time, of equal length

  std::size_t size() const { return seconds.size(); }
  void add(double at_seconds, double held_bytes) {
    seconds.push_back(at_seconds);
    bytes.push_back(held_bytes);
  }
};

struct Growth {
  double bytes = 0;             // growth of the retained bytes over the window
  double bytes_per_second = 0;  // slope of the line
  double window_seconds = 0;    // length of the window, which ends at the curve's end
  double r_squared = 0;         // 0…1
  double steadiness = 0;        // 0…1: the slowest quarter's growth ÷ the mean quarter's
};

inline constexpr std::size_t kFewestMoments = 8;
inline constexpr double kLeastGrowthBytes = 256 * 1024;

// `sample_bytes`: the bytes that one sample stands for if the figures are estimates; 0 if they are
// exact. Growth that is not significant is ignored.
std::optional<Growth> growth_of(const HeldCurve& curve, double sample_bytes = 0);

// The growth of the retained bytes since this part (0…1) of the curve's time.
double retained_since(const HeldCurve& curve, double part);

// Whether two estimates differ by more than kDeviations standard deviations. The number of samples
// follows a Poisson distribution: its variance is the number itself.
inline constexpr double kDeviations = 3.5;
bool is_significant(double before_bytes, double after_bytes, double sample_bytes);

}  // namespace oomrec::tools::findings
