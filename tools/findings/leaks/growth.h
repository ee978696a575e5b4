// Does a curve of held bytes grow as a leak does? A judgement of numbers alone.
//
// Only what was never given back counts: of each moment the least that was held from then on. On
// that curve a sawtooth and what was freed in the end are flat. It must rise in every quarter of
// what is looked at, and not much slower in its second half than in its first: so a warm-up, a
// cache that levels off and a single step are none. Where something takes its time to begin, the
// last three quarters, the last half and the last quarter are looked at, too.
//
// The slope is Theil and Sen's: the median of the slopes between all pairs of moments. Allocators
// and containers grow in steps, and one moment may catch a temporary buffer; least squares would
// follow such a moment, the median does not. R² tells how well that line fits what was held.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace oomrec::tools::findings {

struct HeldCurve {
  std::vector<double> seconds, bytes;  // in order of time, equally long

  std::size_t size() const { return seconds.size(); }
  void add(double at_seconds, double held_bytes) {
    seconds.push_back(at_seconds);
    bytes.push_back(held_bytes);
  }
};

struct Growth {
  double bytes = 0;             // more in the end than in the beginning, and not given back
  double bytes_per_second = 0;  // slope of the line
  double window_seconds = 0;    // the part of the curve that is looked at, up to its end
  double r_squared = 0;         // 0…1
  double steadiness = 0;        // 0…1: the slowest quarter's growth ÷ the mean quarter's
};

inline constexpr std::size_t kFewestMoments = 8;
inline constexpr double kLeastGrowthBytes = 256 * 1024;

// `sample_bytes`: what one sample stands for where the figures are estimates of sampled blocks, 0
// where they are exact. Growth that is no more than the chance of sampling is none.
std::optional<Growth> growth_of(const HeldCurve& curve, double sample_bytes = 0);

// What was kept in the second half of the curve's time, and not given back.
double kept_since_half(const HeldCurve& curve);

// By it numbers of samples are far apart that are not equal but for chance: so many standard
// deviations of their difference, each number's variance being that number.
inline constexpr double kDeviations = 3.5;
bool beyond_chance(double before_bytes, double after_bytes, double sample_bytes);

}  // namespace oomrec::tools::findings
