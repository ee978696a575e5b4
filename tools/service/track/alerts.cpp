#include "tools/service/track/alerts.h"

#include <fmt/format.h>

#include "tools/base/text.h"

namespace oomrec::tools::service {
namespace {

// A rule tells again after its figure was so far below the threshold: one that swings around it is
// told once.
constexpr double kHysteresisPercent = 5;
constexpr double kHysteresisShare = 0.05;

double unused_share(const processes::Look& look) {
  if (look.reserved_bytes <= look.allocated_bytes) return 0;
  return static_cast<double>(look.reserved_bytes - look.allocated_bytes) /
         static_cast<double>(look.reserved_bytes);
}

std::string bound_text(const processes::Bound& bound) {
  return fmt::format("{:.1f} % of {} ({})", bound.percent(), size_text(bound.limit_bytes),
                     bound.name);
}

}  // namespace

bool TrackAlerts::begins(TrackRule rule, bool over, bool again_below) {
  bool& told = told_[rule];
  if (told && again_below) told = false;
  if (!over || told) return false;
  told = true;
  return true;
}

std::vector<TrackAlert> TrackAlerts::look(const processes::Look& look, std::int64_t change_bytes) {
  std::vector<TrackAlert> alerts;
  const double percent = look.bound.percent();
  const auto is_over = [&](TrackRule rule, double threshold) {
    return begins(rule, percent >= threshold, percent < threshold - kHysteresisPercent);
  };
  // Both are asked: a critical one is not followed by a warning on the way down.
  const bool warning = is_over(TrackRule::warning, thresholds_.warning_percent);
  const bool critical = is_over(TrackRule::critical, thresholds_.critical_percent);
  if (critical) {
    alerts.push_back({TrackRule::critical, bound_text(look.bound)});
  } else if (warning) {
    alerts.push_back({TrackRule::warning, bound_text(look.bound)});
  }
  const auto least = static_cast<std::int64_t>(thresholds_.growth_bytes);
  if (begins(TrackRule::growth, change_bytes > least, change_bytes <= 0)) {
    alerts.push_back(
        {TrackRule::growth, fmt::format("grew by {} from one look to the next",
                                        size_text(static_cast<std::uint64_t>(change_bytes)))});
  }
  const double unused = look.inactive_bytes ? unused_share(look) : 0;
  if (begins(TrackRule::fragmentation, unused > thresholds_.fragmentation,
             unused < thresholds_.fragmentation - kHysteresisShare)) {
    alerts.push_back({TrackRule::fragmentation,
                      fmt::format("{} of the {} that are reserved are not allocated",
                                  percent_text(unused), size_text(look.reserved_bytes))});
  }
  return alerts;
}

}  // namespace oomrec::tools::service
