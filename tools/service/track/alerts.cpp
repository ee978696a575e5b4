#include "tools/service/track/alerts.h"

#include <fmt/format.h>

#include "tools/base/json.h"
#include "tools/base/json_budget.h"
#include "tools/base/text.h"

namespace oomrec::tools::service {
namespace {

// A figure must fall this far below its threshold before the rule alerts again, so that a figure
// that hovers at the threshold alerts once.
constexpr double kHysteresisPercent = 5;
constexpr double kHysteresisShare = 0.05;

constexpr std::string_view kDefaults =
#include "tools/service/track/alert_thresholds.inc"
    ;

double unused_share(const processes::MemorySample& sample) {
  if (sample.reserved_bytes <= sample.allocated_bytes) return 0;
  return static_cast<double>(sample.reserved_bytes - sample.allocated_bytes) /
         static_cast<double>(sample.reserved_bytes);
}

std::string bound_text(const processes::Bound& bound) {
  return fmt::format("{:.1f} % of {} ({})", bound.percent(), size_text(bound.limit_bytes),
                     bound.name);
}

}  // namespace

Thresholds::Thresholds() {
  const Json defaults = parse_json(kDefaults);
  warning_percent = defaults.at("memory_warning_percent").get<double>();
  critical_percent = defaults.at("memory_critical_percent").get<double>();
  growth_bytes = static_cast<std::uint64_t>(defaults.at("memory_leak_threshold").get<double>());
  fragmentation = defaults.at("fragmentation_threshold").get<double>();
}

std::vector<TrackAlert> TrackAlerts::check(const processes::MemorySample& sample,
                                           std::int64_t change_bytes) {
  std::vector<TrackAlert> alerts;
  const double percent = sample.bound.percent();
  const auto is_over = [&](TrackRule rule, double threshold) {
    return rules_.begins(rule, percent >= threshold, percent < threshold - kHysteresisPercent);
  };
  // Evaluates both, so that no warning follows a critical alert on the way down.
  const bool warning = is_over(TrackRule::warning, thresholds_.warning_percent);
  const bool critical = is_over(TrackRule::critical, thresholds_.critical_percent);
  if (critical) {
    alerts.push_back({TrackRule::critical, bound_text(sample.bound)});
  } else if (warning) {
    alerts.push_back({TrackRule::warning, bound_text(sample.bound)});
  }
  const auto least = static_cast<std::int64_t>(thresholds_.growth_bytes);
  if (rules_.begins(TrackRule::growth, change_bytes > least, change_bytes <= 0)) {
    alerts.push_back(
        {TrackRule::growth, fmt::format("grew by {} between two samples",
                                        size_text(static_cast<std::uint64_t>(change_bytes)))});
  }
  const double unused = sample.inactive_bytes ? unused_share(sample) : 0;
  if (rules_.begins(TrackRule::fragmentation, unused > thresholds_.fragmentation,
                    unused < thresholds_.fragmentation - kHysteresisShare)) {
    alerts.push_back({TrackRule::fragmentation,
                      fmt::format("{} of the {} reserved are not allocated", percent_text(unused),
                                  size_text(sample.reserved_bytes))});
  }
  return alerts;
}

}  // namespace oomrec::tools::service
