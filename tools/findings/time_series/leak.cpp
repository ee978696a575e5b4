#include "tools/findings/time_series/leak.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace oomrec::tools::findings {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

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
  const double highest = *std::max_element(series.values.begin(), series.values.end());
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
  const auto grown =
      std::count_if(growth_bytes.begin(), growth_bytes.end(), [](double one) { return one > 0; });
  leak.grown_share = static_cast<double>(grown) / static_cast<double>(growth_bytes.size());
  if (leak.mean_bytes <= 0 || leak.grown_share <= 0.1 || leak.total_bytes <= 100 * kMiB)
    return std::nullopt;
  leak.severity = leak.total_bytes > 1024 * kMiB ? Severity::critical : Severity::high;
  return leak;
}

}  // namespace oomrec::tools::findings
