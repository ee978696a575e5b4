// When an alert is due: a figure that hovers at its threshold alerts once, and a rule alerts at
// most once a minute, whatever happens. What comes in between is told by its next alert.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/service/alerts/incident.h"

namespace oomrec::tools::service {

// Of a figure that should not fall below a threshold.
class Hysteresis {
 public:
  static constexpr double kFallBack = 0.05;  // what it must rise above the threshold meanwhile

  // True when `ratio` of `what` has fallen below `threshold` and that has not been told yet.
  bool falls(const std::string& what, double ratio, double threshold);
  void forget(const std::string& what) { below_.erase(what); }

 private:
  std::set<std::string> below_;
};

class Pace {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kBetweenAlerts = std::chrono::minutes{1};  // of one rule
  static constexpr std::size_t kMostAlso = 20;

  void add(Concern trouble);

  // The alerts that are due.
  std::vector<Alert> take(Clock::time_point now);
  std::optional<Clock::time_point> due() const;  // the next one

 private:
  struct Waiting {
    std::optional<Alert> alert = {};
    std::optional<Clock::time_point> last = {};  // nothing: the rule has never told anything
    Clock::time_point due() const { return last ? *last + kBetweenAlerts : Clock::time_point{}; }
  };
  std::map<Rule, Waiting> waiting_;
};

}  // namespace oomrec::tools::service
