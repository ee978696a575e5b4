// Judges from a few seconds of samples whether memory is at risk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/processes/observe/observed.h"

namespace oomrec::tools::findings {

struct RiskFigures {
  std::uint64_t allocated_bytes = 0, reserved_bytes = 0, peak_bytes = 0, total_bytes = 0;
  double utilization_ratio = 0;    // used ÷ the nearest limit, highest of the samples
  double fragmentation_ratio = 0;  // inactive ÷ reserved, highest of the samples
  std::uint64_t ooms = 0;
  std::string bound;  // name of that limit

  void add(const processes::MemorySample& sample);

  bool oom_occurred() const { return ooms != 0; }
  bool high_utilization() const { return utilization_ratio >= 0.85; }
  bool fragmented() const { return fragmentation_ratio >= 0.3; }
  bool any() const { return oom_occurred() || high_utilization() || fragmented(); }

  std::vector<std::string> suggestions() const;
  std::vector<std::string> findings() const;  // one line for each risk
};

}  // namespace oomrec::tools::findings
