// What `oomrec track` says: alerts, each once until its condition has ended, and the largest
// holders near the limit.
#pragma once

#include <chrono>
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

// Reports the largest holders of a process near its limit, and what may help. It frees nothing: no
// process can free another one's memory.
class Watchdog {
 public:
  // Reports from this percentage of the nearest limit on, and at most once in kBetween.
  static constexpr double kFromPercent = 90;
  static constexpr std::chrono::seconds kBetween{30};

  // Lines for the user; empty if nothing is due. Symbolizes stacks, which may take a second.
  std::string check(const processes::MemorySample& sample, const processes::Observed& observed);

 private:
  std::chrono::steady_clock::time_point last_{};  // never: the epoch
};

}  // namespace oomrec::tools::service
