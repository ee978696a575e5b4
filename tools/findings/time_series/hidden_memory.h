// What lies between an allocator and its device: memory that it reserved and nobody uses
// (fragmentation), and memory of the device that it did not reserve (the hidden gap: contexts,
// other libraries, other processes; on the host stacks, file mappings, other allocators).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tools/findings/time_series/statistics.h"

namespace oomrec::tools::findings {

struct HeldSample {
  double seconds = 0;
  double allocated = 0, reserved = 0;  // bytes
  double used = 0;                     // of the device, by all
  std::optional<double> total;         // of the device
  std::optional<double> inactive;      // of what is reserved; else reserved − allocated

  double unused_share() const;  // (reserved − allocated) ÷ reserved; 0 of nothing reserved
};

// Mean share of what is reserved and not allocated: more than 0.3, critical more than 0.5.
struct Fragmented {
  double mean_share = 0, highest_share = 0;
  Severity severity = Severity::none;
};
Fragmented fragmentation_over(const std::vector<HeldSample>& samples);

enum class GapSign {
  transient_spike,     // the highest gap is more than 2 deviations above the mean (critical: 4)
  persistent_drift,    // it grows along a line: R² ≥ 0.6 (critical: 0.85), five samples or more
  fragmentation_like,  // and ≥ 0.3 of what is reserved is inactive
};
std::string_view word_of(GapSign sign);

struct GapFinding {
  GapSign sign = GapSign::transient_spike;
  Severity severity = Severity::none;
  double figure = 0;  // deviations; R²; share
};

// Device used − reserved. Looked at from three samples on, where it comes to 5 % of the total.
struct HiddenGap {
  double mean_bytes = 0, highest_bytes = 0;
  double highest_share = 0;     // of the total
  double bytes_per_second = 0;  // slope
  std::vector<GapFinding> findings;
};
// Nothing where the total is not known, or the gap is too small.
std::optional<HiddenGap> hidden_gap_of(const std::vector<HeldSample>& samples);

}  // namespace oomrec::tools::findings
