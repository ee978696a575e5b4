#include "tools/findings/time_series/hidden_memory.h"

#include <algorithm>
#include <array>

namespace oomrec::tools::findings {
namespace {

constexpr double kLeastShareOfTotal = 0.05;
constexpr std::size_t kFewest = 3;
constexpr std::size_t kFewestOfDrift = 5;

std::optional<GapFinding> spike(const Series& gap, double mean, double highest) {
  const double deviation = deviation_of(gap.values);
  const double deviations = deviation > 0 ? (highest - mean) / deviation : 0;
  if (deviations <= 2) return std::nullopt;
  return GapFinding{GapSign::transient_spike,
                    deviations >= 4 ? Severity::critical : Severity::medium, deviations};
}

std::optional<GapFinding> drift(const Series& gap, const Fit& fit) {
  if (gap.size() < kFewestOfDrift || fit.slope <= 0 || fit.r_squared() < 0.6) return std::nullopt;
  return GapFinding{GapSign::persistent_drift,
                    fit.r_squared() >= 0.85 ? Severity::critical : Severity::medium,
                    fit.r_squared()};
}

std::optional<GapFinding> fragmentation_like(const std::vector<HeldSample>& samples) {
  std::vector<double> shares;
  for (const HeldSample& sample : samples)
    if (sample.reserved > 0)
      shares.push_back(sample.inactive ? *sample.inactive / sample.reserved
                                       : sample.unused_share());
  const double share = mean_of(shares);
  constexpr double kRounding = 1e-9;  // error of the mean of equal shares
  if (share < 0.3 - kRounding) return std::nullopt;
  return GapFinding{GapSign::fragmentation_like, Severity::medium, share};
}

}  // namespace

double HeldSample::unused_share() const {
  return reserved > allocated ? (reserved - allocated) / reserved : 0;
}

Fragmented fragmentation_over(const std::vector<HeldSample>& samples) {
  std::vector<double> shares;
  for (const HeldSample& sample : samples)
    if (sample.reserved > 0) shares.push_back(sample.unused_share());
  Fragmented found;
  if (shares.empty()) return found;
  found.mean_share = mean_of(shares);
  found.highest_share = *std::ranges::max_element(shares);
  found.severity = found.mean_share > 0.5   ? Severity::critical
                   : found.mean_share > 0.3 ? Severity::medium
                                            : Severity::none;
  return found;
}

std::string_view word_of(GapSign sign) {
  constexpr std::array<std::string_view, 3> kWords = {"transient_spike", "persistent_drift",
                                                      "fragmentation_like"};
  return kWords[static_cast<std::size_t>(sign)];
}

std::optional<HiddenGap> hidden_gap_of(const std::vector<HeldSample>& samples) {
  Series gap;
  double highest_share = 0;
  for (const HeldSample& sample : samples) {
    if (!sample.total || *sample.total <= 0) continue;
    const double hidden = std::max(0.0, sample.used - sample.reserved);
    gap.add(sample.seconds, hidden);
    highest_share = std::max(highest_share, hidden / *sample.total);
  }
  if (gap.size() < kFewest || highest_share < kLeastShareOfTotal) return std::nullopt;
  const Fit fit = fit_of(gap);
  HiddenGap found;
  found.mean_bytes = mean_of(gap.values);
  found.highest_bytes = *std::ranges::max_element(gap.values);
  found.highest_share = highest_share;
  found.bytes_per_second = fit.slope;
  for (const auto& finding : {spike(gap, found.mean_bytes, found.highest_bytes), drift(gap, fit),
                              fragmentation_like(samples)})
    if (finding) found.findings.push_back(*finding);
  return found;
}

}  // namespace oomrec::tools::findings
