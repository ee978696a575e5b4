// Is memory at risk? A judgement of what was seen for a few seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/processes/observe/observed.h"

namespace oomrec::tools::findings {

struct RiskFigures {
  std::uint64_t allocated_bytes = 0, reserved_bytes = 0, peak_bytes = 0, total_bytes = 0;
  double utilization_ratio = 0;    // used ÷ the nearest limit, the highest that was seen
  double fragmentation_ratio = 0;  // inactive ÷ reserved, the highest that was seen
  std::uint64_t ooms = 0;
  std::string bound;  // what the utilization is of

  void add(const processes::Look& look);

  bool oom_occurred() const { return ooms != 0; }
  bool high_utilization() const { return utilization_ratio >= 0.85; }
  bool fragmented() const { return fragmentation_ratio >= 0.3; }
  bool any() const { return oom_occurred() || high_utilization() || fragmented(); }

  std::vector<std::string> suggestions() const;
  std::vector<std::string> findings() const;  // of what is risky, a line each
};

}  // namespace oomrec::tools::findings
