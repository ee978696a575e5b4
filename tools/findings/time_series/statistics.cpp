#include "tools/findings/time_series/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace oomrec::tools::findings {
namespace {

// The continued fraction of the incomplete beta function, by Lentz's method (Abramowitz and Stegun
// 26.5.8; converges fast where x < (a + 1) / (a + b + 2)).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr int kMostTerms = 300;
  const auto not_zero = [](double value) { return std::fabs(value) < kTiny ? kTiny : value; };
  double c = 1;
  double d = 1 / not_zero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m <= kMostTerms; ++m) {
    const double twice = a + 2 * m;
    const double even = m * (b - m) * x / ((twice - 1) * twice);
    const double odd = -(a + m) * (a + b + m) * x / (twice * (twice + 1));
    for (const double term : {even, odd}) {
      d = 1 / not_zero(1 + term * d);
      c = not_zero(1 + term / c);
      fraction *= c * d;
    }
    if (std::fabs(c * d - 1) < std::numeric_limits<double>::epsilon()) break;
  }
  return fraction;
}

double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                   : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

// The probability that `count` uncorrelated points have an r at least as far from 0.
double chance_of(double r, std::size_t count) {
  if (count < 3) return 1;
  const auto freedom = static_cast<double>(count - 2);
  // freedom / (freedom + t²), with t² = r² freedom / (1 − r²).
  return incomplete_beta(freedom / 2, 0.5, 1 - r * r);
}

}  // namespace

std::string_view word_of(Severity severity) {
  constexpr std::array<std::string_view, 5> kWords = {"none", "low", "medium", "high", "critical"};
  return kWords[static_cast<std::size_t>(severity)];
}

double mean_of(std::span<const double> values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation_of(std::span<const double> values) {
  if (values.empty()) return 0;
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

double quantile_of(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - std::floor(at)) * (values[above] - values[below]);
}

double correlation_of(std::span<const double> one, std::span<const double> other) {
  const double mean_one = mean_of(one);
  const double mean_other = mean_of(other);
  double both = 0;
  double square_one = 0;
  double square_other = 0;
  for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
    both += (one[i] - mean_one) * (other[i] - mean_other);
    square_one += (one[i] - mean_one) * (one[i] - mean_one);
    square_other += (other[i] - mean_other) * (other[i] - mean_other);
  }
  const double product = std::sqrt(square_one) * std::sqrt(square_other);
  return product > 0 ? std::clamp(both / product, -1.0, 1.0) : 0;
}

Fit fit_of(const Series& series) {
  Fit fit;
  const double mean_value = mean_of(series.values);
  const double spread_seconds = deviation_of(series.seconds);
  fit.intercept = mean_value;
  if (spread_seconds <= 0) return fit;
  fit.r = correlation_of(series.seconds, series.values);
  fit.slope = fit.r * deviation_of(series.values) / spread_seconds;
  fit.intercept = mean_value - fit.slope * mean_of(series.seconds);
  fit.p = chance_of(fit.r, series.size());
  return fit;
}

}  // namespace oomrec::tools::findings
