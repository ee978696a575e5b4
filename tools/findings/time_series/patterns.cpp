#include "tools/findings/time_series/patterns.h"
#include "common/system/units.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>

namespace oomrec::tools::findings {
namespace {

constexpr double kLeastCorrelation = 0.7;
constexpr std::size_t kFewestChunks = 4;
constexpr std::size_t kShortestPeriod = 4;    // samples
constexpr std::size_t kMostForPeriod = 2000;  // samples that are used: the cost is quadratic
constexpr double kLeastShareOfRange = 0.5;    // mean range of the chunks ÷ range of the series
constexpr double kTolerance = 0.02;           // correlation given up for a shorter period

// The series, evenly thinned, minus its linear trend.
Series flattened(const Series& series) {
  const std::size_t every = (series.size() + kMostForPeriod - 1) / kMostForPeriod;
  const Fit fit = fit_of(series);
  Series flat;
  for (std::size_t i = 0; i < series.size(); i += every)
    flat.add(series.seconds[i], series.values[i] - fit.intercept - fit.slope * series.seconds[i]);
  return flat;
}

double range_of(std::span<const double> values) {
  const auto [low, high] = std::ranges::minmax_element(values);
  return *high - *low;
}

// Mean correlation of neighbouring chunks of `length`; 0 if the chunks span too little of the
// range.
double chunk_correlation(std::span<const double> values, std::size_t length) {
  const std::size_t chunks = values.size() / length;
  double ranges = 0;
  double sum = 0;
  for (std::size_t i = 0; i < chunks; ++i) {
    const auto chunk = values.subspan(i * length, length);
    ranges += range_of(chunk);
    if (i != 0) sum += correlation_of(values.subspan((i - 1) * length, length), chunk);
  }
  const auto count = static_cast<double>(chunks);
  return ranges / count >= kLeastShareOfRange * range_of(values) ? sum / (count - 1) : 0;
}

}  // namespace

std::optional<Spikes> spikes_of(const Series& series) {
  constexpr double kLeastRise = 0.01;
  if (series.size() < kFewestOfPattern) return std::nullopt;
  const double third = quantile_of(series.values, 0.75);
  const double range = third - quantile_of(series.values, 0.25);
  Spikes spikes;
  spikes.above_bytes = std::max(third + 1.5 * range, third * (1 + kLeastRise));
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (series.values[i] <= spikes.above_bytes) continue;
    ++spikes.count;
    if (series.values[i] <= spikes.highest_bytes) continue;
    spikes.highest_bytes = series.values[i];
    spikes.highest_at_seconds = series.seconds[i];
  }
  return spikes.count != 0 ? std::optional{spikes} : std::nullopt;
}

std::optional<Steps> steps_of(const Series& series) {
  constexpr double kLeastChange = 0.2;  // of the value before
  constexpr double kLeastShare = 0.1;   // of the samples
  if (series.size() < kFewestOfPattern) return std::nullopt;
  Steps steps;
  for (std::size_t i = 1; i < series.size(); ++i) {
    const double before = series.values[i - 1];
    const double change = series.values[i] - before;
    if (std::fabs(change) <= kLeastChange * before) continue;
    ++steps.count;
    if (std::fabs(change) > std::fabs(steps.largest_bytes)) steps.largest_bytes = change;
  }
  const double share = static_cast<double>(steps.count) / static_cast<double>(series.size());
  return share > kLeastShare ? std::optional{steps} : std::nullopt;
}

std::optional<Period> period_of(const Series& series) {
  if (series.size() < kFewestChunks * kShortestPeriod) return std::nullopt;
  const Series flat = flattened(series);
  const std::span<const double> values{flat.values};
  std::vector<double> correlations;  // by length, from the shortest on
  for (std::size_t length = kShortestPeriod; length <= values.size() / kFewestChunks; ++length)
    correlations.push_back(chunk_correlation(values, length));
  const double best = *std::ranges::max_element(correlations);
  if (best <= kLeastCorrelation) return std::nullopt;
  const auto first =
      std::ranges::find_if(correlations, [&](double found) { return found >= best - kTolerance; });
  const auto length =
      static_cast<double>(kShortestPeriod + static_cast<std::size_t>(first - correlations.begin()));
  const double interval =
      (flat.seconds.back() - flat.seconds.front()) / static_cast<double>(flat.size() - 1);
  return Period{length * interval, *first};
}

std::optional<Trend> trend_of(const Series& series) {
  if (series.size() < kFewestOfPattern) return std::nullopt;
  const Fit fit = fit_of(series);
  if (fit.slope <= 0 || std::fabs(fit.r) <= 0.5 || fit.p >= 0.05) return std::nullopt;
  return Trend{fit.slope, fit.r, fit.p};
}

std::optional<double> growth_began_at(const Series& series) {
  constexpr double kLeastBytes = 64.0 * 1024 * 1024;
  constexpr double kLeastShare = 0.1;  // of the peak
  if (series.size() < 2) return std::nullopt;
  const double peak = *std::ranges::max_element(series.values);
  const double least = std::max(kLeastBytes, kLeastShare * peak);
  std::size_t begin = 0;
  for (std::size_t i = 1; i < series.size(); ++i) {
    if (series.values[i] <= series.values[i - 1]) {
      begin = i;
    } else if (series.values[i] - series.values[begin] >= least) {
      return series.seconds[begin];
    }
  }
  return std::nullopt;
}

namespace {

std::optional<LeakFinding> rising(const Series& series) {
  std::size_t up = 0;
  for (std::size_t i = 1; i < series.size(); ++i) up += series.values[i] > series.values[i - 1];
  const double share = static_cast<double>(up) / static_cast<double>(series.size() - 1);
  if (share <= 0.7) return std::nullopt;
  return LeakFinding{LeakSign::rising, share > 0.9 ? Severity::high : Severity::medium, share};
}

std::optional<LeakFinding> spikes(const Series& series) {
  const double deviation = deviation_of(series.values);
  if (deviation <= 0) return std::nullopt;
  const double highest = *std::ranges::max_element(series.values);
  const double deviations = (highest - mean_of(series.values)) / deviation;
  if (deviations <= 3) return std::nullopt;
  return LeakFinding{LeakSign::spikes, Severity::low, deviations};
}

std::optional<LeakFinding> not_freed(const Series& series) {
  const std::span<const double> values{series.values};
  const double first = mean_of(values.first(5));
  const double last = mean_of(values.last(5));
  if (last <= 1.5 * first) return std::nullopt;
  // From zero bytes, the ratio would be infinite.
  return LeakFinding{LeakSign::not_freed, Severity::medium, first > 0 ? last / first : 0};
}

}  // namespace

std::string_view word_of(LeakSign sign) {
  constexpr std::array<std::string_view, 3> kWords = {"rising", "spikes", "not_freed"};
  return kWords[static_cast<std::size_t>(sign)];
}

std::vector<LeakFinding> leak_signs_of(const Series& series) {
  std::vector<LeakFinding> found;
  if (series.size() < kFewestOfLeak) return found;
  for (const auto& finding : {rising(series), spikes(series), not_freed(series)})
    if (finding) found.push_back(*finding);
  return found;
}

std::optional<FunctionLeak> function_leak_of(std::span<const double> growth_bytes) {
  if (growth_bytes.size() < 3) return std::nullopt;
  FunctionLeak leak;
  leak.total_bytes = std::accumulate(growth_bytes.begin(), growth_bytes.end(), 0.0);
  leak.mean_bytes = mean_of(growth_bytes);
  const auto grown = std::ranges::count_if(growth_bytes, [](double one) { return one > 0; });
  leak.grown_share = static_cast<double>(grown) / static_cast<double>(growth_bytes.size());
  if (leak.mean_bytes <= 0 || leak.grown_share <= 0.1 || leak.total_bytes <= 100 * kMiB)
    return std::nullopt;
  leak.severity = leak.total_bytes > 1024 * kMiB ? Severity::critical : Severity::high;
  return leak;
}

}  // namespace oomrec::tools::findings
