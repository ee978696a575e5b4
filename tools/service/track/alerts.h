// The alert rules of `oomrec track`. Each rule alerts once, and again only after its condition has
// ended.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/base/hysteresis.h"
#include "tools/processes/observe/observed.h"

namespace oomrec::tools::service {

// The defaults are those of the Python package's trackers: alert_thresholds.json.
struct Thresholds {
  Thresholds();

  double warning_percent, critical_percent;  // of the nearest limit
  std::uint64_t growth_bytes;                // between two samples
  double fragmentation;                      // unused fraction of the memory reserved on a GPU
};

enum class TrackRule { warning, critical, growth, fragmentation };

struct TrackAlert {
  TrackRule rule = TrackRule::warning;
  std::string text;

  // The type of its event.
  std::string_view type() const { return rule == TrackRule::critical ? "critical" : "warning"; }
};

class TrackAlerts {
 public:
  explicit TrackAlerts(const Thresholds& thresholds) : thresholds_(thresholds) {}

  // `change_bytes`: change of the allocated bytes since the previous sample.
  std::vector<TrackAlert> check(const processes::MemorySample& sample, std::int64_t change_bytes);

 private:
  const Thresholds thresholds_;
  Hysteresis<TrackRule> rules_;
};

}  // namespace oomrec::tools::service
