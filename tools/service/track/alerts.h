// When is a look at memory worth an alert? Each rule tells once, and again after what it told of
// was over.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/processes/observe/observed.h"

namespace oomrec::tools::service {

struct Thresholds {
  double warning_percent = 80, critical_percent = 95;  // of the nearest limit
  std::uint64_t growth_bytes = 100 << 20;              // from one look to the next
  double fragmentation = 0.3;                          // of what is reserved on a GPU
};

enum class TrackRule { warning, critical, growth, fragmentation };

struct TrackAlert {
  TrackRule rule = TrackRule::warning;
  std::string text;

  // As an event's type.
  std::string_view type() const { return rule == TrackRule::critical ? "critical" : "warning"; }
};

class TrackAlerts {
 public:
  explicit TrackAlerts(const Thresholds& thresholds) : thresholds_(thresholds) {}

  // `change_bytes`: of what is allocated, since the look before.
  std::vector<TrackAlert> look(const processes::Look& look, std::int64_t change_bytes);

 private:
  // True once, until the figure was `over` and came back below `again_below`.
  bool begins(TrackRule rule, bool over, bool again_below);

  const Thresholds thresholds_;
  std::map<TrackRule, bool> told_;
};

}  // namespace oomrec::tools::service
