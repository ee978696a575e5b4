// Writes a bundle of the recorded process that waits the most when the machine is under memory
// pressure.
//
// It cannot report that itself while it does not allocate. If no recorded process waits, the
// pressure is somebody else's.
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
