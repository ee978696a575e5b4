// The difference between an allocator's figures and its device's: memory that it reserved but does
// not use (fragmentation), and used device memory that it did not reserve (the hidden gap:
// contexts, other libraries, other processes; on the host: stacks, file mappings, other
// allocators).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tools/findings/time_series/statistics.h"

namespace oomrec::tools::findings {

struct HeldSample {
  double seconds = 0;
  double allocated = 0, reserved = 0;  // bytes
  double used = 0;                     // of the device, by all processes
  std::optional<double> total;         // of the device
  std::optional<double> inactive;      // part of reserved; nothing: reserved − allocated

  double unused_share() const;  // (reserved − allocated) ÷ reserved; 0 if nothing is reserved
};

// The share of the reserved memory that is not allocated. Its mean is medium above 0.3, and
// critical above 0.5.
struct Fragmented {
  double mean_share = 0, highest_share = 0;
  Severity severity = Severity::none;
};
Fragmented fragmentation_over(const std::vector<HeldSample>& samples);

enum class GapSign {
  transient_spike,   // the highest gap is more than 2 deviations above the mean (critical: 4)
  persistent_drift,  // the gap grows linearly: R² ≥ 0.6 (critical: 0.85), at least five samples
  fragmentation_like,  // there is a gap, and ≥ 0.3 of the reserved memory is inactive
};
std::string_view word_of(GapSign sign);

struct GapFinding {
  GapSign sign = GapSign::transient_spike;
  Severity severity = Severity::none;
  double figure = 0;  // deviations; R²; share
};

// Used device memory − reserved memory. Needs three samples, and a gap of 5 % of the total.
struct HiddenGap {
  double mean_bytes = 0, highest_bytes = 0;
  double highest_share = 0;     // of the total
  double bytes_per_second = 0;  // slope
  std::vector<GapFinding> findings;
};
// Nothing: the total is unknown, or the gap is too small.
std::optional<HiddenGap> hidden_gap_of(const std::vector<HeldSample>& samples);

}  // namespace oomrec::tools::findings
