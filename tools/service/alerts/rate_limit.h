// Limits the rate of alerts: each rule alerts at most once a minute. The next alert lists the
// incidents in between.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "tools/service/alerts/incident.h"

namespace oomrec::tools::service {

class RateLimit {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kBetweenAlerts = std::chrono::minutes{1};  // of one rule
  static constexpr std::size_t kMostAlso = 20;

  void add(Incident incident);

  // Returns the alerts that are due, and removes them.
  std::vector<Alert> take_due(Clock::time_point now);
  std::optional<Clock::time_point> due() const;  // when the next one is due

 private:
  struct Waiting {
    std::optional<Alert> alert = {};
    std::optional<Clock::time_point> last = {};  // empty: never
    Clock::time_point due() const { return last ? *last + kBetweenAlerts : Clock::time_point{}; }
  };
  std::map<Rule, Waiting> waiting_;
};

}  // namespace oomrec::tools::service
