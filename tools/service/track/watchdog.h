// Reports the largest holders of a process near its limit, and what may help. It frees nothing: no
// process can free another one's memory.
#pragma once

#include <chrono>
#include <string>

#include "tools/processes/observe/observed.h"

namespace oomrec::tools::service {

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
