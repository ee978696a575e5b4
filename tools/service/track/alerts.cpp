#include "tools/service/track/alerts.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/base/error.h"
#include "tools/base/json.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/open.h"
#include "tools/findings/advice/advice.h"

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

namespace {

constexpr std::size_t kMostHolders = 3;
constexpr std::size_t kMostHints = 3;

std::string advice_text(const findings::AdviceFacts& facts,
                        const std::vector<findings::Hint>& hints) {
  std::string page = "largest holders:";
  for (std::size_t i = 0; i < std::min(kMostHolders, facts.held.size()); ++i)
    page += fmt::format("\n  {:>10}  {}", size_text(facts.held[i].bytes),
                        clip(facts.held[i].subject, 84));
  for (std::size_t i = 0; i < std::min(kMostHints, hints.size()); ++i)
    page += fmt::format("\n  → {}", wrap(hints[i].text, 96, 4));
  return page;
}

}  // namespace

std::string Watchdog::check(const processes::MemorySample& sample,
                            const processes::Observed& observed) {
  const auto now = std::chrono::steady_clock::now();
  const bool is_recent = last_ != std::chrono::steady_clock::time_point{} && now - last_ < kBetween;
  if (sample.bound.percent() < kFromPercent || is_recent || observed.recording() == nullptr)
    return {};
  last_ = now;
  try {
    const bundles::Source source = bundles::open_source(observed.recording()->path().string(),
                                                        recording::CacheDirectory::of_user());
    const findings::AdviceFacts facts = findings::advice_facts(source);
    return advice_text(facts, findings::advice_of(facts));
  } catch (const Error&) {
    return {};  // it has just ended
  }
}

}  // namespace oomrec::tools::service
