// What can be done from outside for a process that runs out of memory: to say who holds it, and
// what may help. Its memory is its own; nobody else can give any of it back.
#pragma once

#include <chrono>
#include <string>

#include "tools/processes/observe/observed.h"

namespace oomrec::tools::service {

class Watchdog {
 public:
  // From this share of the nearest limit on, and at most so often.
  static constexpr double kFromPercent = 90;
  static constexpr std::chrono::seconds kBetween{30};

  // Lines for the user; empty where there is nothing to say, or it was said lately. Names stacks,
  // which may take a second.
  std::string look(const processes::Look& look, const processes::Observed& observed);

 private:
  std::chrono::steady_clock::time_point last_{};  // never: the epoch
};

}  // namespace oomrec::tools::service
