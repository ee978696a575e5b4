// Writes a bundle of the largest recorded process when the machine is under memory pressure.
//
// The process with the most resident memory is the likeliest cause. It cannot report that itself
// while it does not allocate.
#pragma once

#include <functional>
#include <string>

#include "tools/service/fleet/listener.h"
#include "tools/service/watch/recorded_process.h"

namespace oomrec::tools::service {

class PressureBundles {
 public:
  using Clock = RecordedProcess::Clock;

  // `report` gets a line for each bundle.
  PressureBundles(std::function<void(const std::string&)> report, Listener& listener);

  // Call under memory pressure. Writes at most one bundle of each process in five minutes.
  void on_pressure(RecordedProcesses& processes);

 private:
  const std::function<void(const std::string&)> report_;
  Listener& listener_;
  Clock::time_point last_search_{};  // never: the epoch
};

}  // namespace oomrec::tools::service
