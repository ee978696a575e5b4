#include "tools/findings/leaks/growth.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace oomrec::tools::findings {
namespace {

constexpr double kLeastShare = 0.01;       // growth ÷ bytes at the end; less is no growth
constexpr double kLeastSteadiness = 0.3;   // of the slowest quarter
constexpr double kLeastLaterShare = 0.65;  // second half's growth ÷ first half's
// A curve that ever fell by this share of the growth may fall again. It counts as a leak only if it
// fell several times in the window, and grew all the same.
constexpr double kDeepFall = 0.5;
constexpr std::size_t kFewestFalls = 3;
struct Window {
  double begin;  // share of the curve's time
  std::size_t fewest_moments;
  bool after_less;  // requires less growth in an equal time before the window
};
constexpr std::array<Window, 4> kWindows = {
    {{0, 8, false}, {0.25, 8, false}, {0.5, 8, false}, {0.75, 16, true}}};

// For each moment, the minimum from then on: bytes that were never freed.
std::vector<double> retained(const std::vector<double>& bytes) {
  std::vector<double> least = bytes;
  for (std::size_t i = least.size(); i-- > 1;) least[i - 1] = std::min(least[i - 1], least[i]);
  return least;
}

// Interpolates the value at a time between moments.
double at(const HeldCurve& curve, const std::vector<double>& values, double seconds) {
  const auto after = std::ranges::lower_bound(curve.seconds, seconds);
  if (after == curve.seconds.begin()) return values.front();
  if (after == curve.seconds.end()) return values.back();
  const auto i = static_cast<std::size_t>(after - curve.seconds.begin());
  const double part = (seconds - curve.seconds[i - 1]) / (curve.seconds[i] - curve.seconds[i - 1]);
  return values[i - 1] + part * (values[i] - values[i - 1]);
}

// Counts the falls by `depth` or more, from moment `first` on.
std::size_t count_falls(const std::vector<double>& bytes, std::size_t first, double depth) {
  std::size_t count = 0;
  double highest = 0;
  for (std::size_t i = first; i < bytes.size(); ++i) {
    highest = std::max(highest, bytes[i]);
    if (highest - bytes[i] < depth) continue;
    ++count;
    highest = bytes[i];
  }
  return count;
}

// The size of temporary buffers: the third quartile of the bytes above the retained ones.
double swing(const std::vector<double>& bytes, const std::vector<double>& least,
             std::size_t first) {
  std::vector<double> above;
  for (std::size_t i = first; i < bytes.size(); ++i) above.push_back(bytes[i] - least[i]);
  const auto upper = above.begin() + static_cast<std::ptrdiff_t>(above.size() * 3 / 4);
  std::nth_element(above.begin(), upper, above.end());
  return *upper;
}

double median(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Line {
  double slope = 0, at_start = 0;
};

// The Theil–Sen line. Uses every n-th moment of very long curves, because it compares all pairs.
Line theil_sen(const HeldCurve& curve, std::size_t first) {
  constexpr std::size_t kMostMoments = 1500;
  std::vector<double> values;
  const std::size_t stride = 1 + (curve.size() - first) / kMostMoments;
  for (std::size_t i = first; i < curve.size(); i += stride) {
    for (std::size_t j = i + stride; j < curve.size(); j += stride) {
      const double apart = curve.seconds[j] - curve.seconds[i];
      if (apart > 0) values.push_back((curve.bytes[j] - curve.bytes[i]) / apart);
    }
  }
  Line line;
  line.slope = median(values);
  values.clear();
  for (std::size_t i = first; i < curve.size(); ++i)
    values.push_back(curve.bytes[i] - line.slope * (curve.seconds[i] - curve.seconds[first]));
  line.at_start = median(values);
  return line;
}

double r_squared(const HeldCurve& curve, std::size_t first, const Line& line) {
  const auto begin = curve.bytes.begin() + static_cast<std::ptrdiff_t>(first);
  const double mean =
      std::accumulate(begin, curve.bytes.end(), 0.0) / static_cast<double>(curve.size() - first);
  double residual = 0;
  double total = 0;
  for (std::size_t i = first; i < curve.size(); ++i) {
    const double fitted = line.at_start + line.slope * (curve.seconds[i] - curve.seconds[first]);
    residual += (curve.bytes[i] - fitted) * (curve.bytes[i] - fitted);
    total += (curve.bytes[i] - mean) * (curve.bytes[i] - mean);
  }
  return total > 0 ? std::clamp(1 - residual / total, 0.0, 1.0) : 0;
}

std::optional<Growth> growth_since(const HeldCurve& curve, const std::vector<double>& least,
                                   const Window& window, double sample_bytes) {
  const double end = curve.seconds.back();
  const double begin = curve.seconds.front() + window.begin * (end - curve.seconds.front());
  const auto first = static_cast<std::size_t>(std::ranges::lower_bound(curve.seconds, begin) -
                                              curve.seconds.begin());
  if (curve.size() - first < window.fewest_moments || end <= begin) return std::nullopt;

  std::array<double, 5> marks{};
  for (std::size_t i = 0; i < marks.size(); ++i)
    marks[i] = at(curve, least, begin + (end - begin) * static_cast<double>(i) / 4);
  const double growth = marks[4] - marks[0];
  if (growth < std::max(kLeastGrowthBytes, kLeastShare * marks[4])) return std::nullopt;
  if (sample_bytes > 0 && !is_significant(marks[0], marks[4], sample_bytes)) return std::nullopt;
  const double deep = kDeepFall * growth;
  if (count_falls(curve.bytes, 0, deep) != 0 &&
      count_falls(curve.bytes, first, deep) < kFewestFalls)
    return std::nullopt;
  if (growth < swing(curve.bytes, least, first)) return std::nullopt;
  double slowest = growth;
  for (std::size_t i = 0; i < 4; ++i) slowest = std::min(slowest, marks[i + 1] - marks[i]);
  const double steadiness = std::min(1.0, slowest * 4 / growth);
  if (steadiness < kLeastSteadiness) return std::nullopt;
  if (marks[4] - marks[2] < kLeastLaterShare * (marks[2] - marks[0])) return std::nullopt;

  const double before = marks[0] - at(curve, least, 2 * begin - end);
  if (window.after_less && growth < kLeastLaterShare * before) return std::nullopt;

  const Line line = theil_sen(curve, first);
  if (line.slope <= 0) return std::nullopt;
  return Growth{growth, line.slope, end - curve.seconds[first], r_squared(curve, first, line),
                steadiness};
}

}  // namespace

bool is_significant(double before_bytes, double after_bytes, double sample_bytes) {
  const double before = before_bytes / sample_bytes;
  const double after = after_bytes / sample_bytes;
  return std::abs(after - before) > kDeviations * std::sqrt(before + after);
}

double retained_since(const HeldCurve& curve, double part) {
  if (curve.size() == 0) return 0;
  const std::vector<double> least = retained(curve.bytes);
  const double first = curve.seconds.front();
  return least.back() - at(curve, least, first + part * (curve.seconds.back() - first));
}

std::optional<Growth> growth_of(const HeldCurve& curve, double sample_bytes) {
  if (curve.size() < kFewestMoments) return std::nullopt;
  const std::vector<double> least = retained(curve.bytes);
  for (const Window& window : kWindows)
    if (auto growth = growth_since(curve, least, window, sample_bytes)) return growth;
  return std::nullopt;
}

}  // namespace oomrec::tools::findings
