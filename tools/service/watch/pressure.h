// Writes a bundle of the recorded process that waits the most when the machine is under memory
// pressure.
//
// It cannot report that itself while it does not allocate. If no recorded process waits, the
// pressure is somebody else's.
#pragma once

#include <functional>
#include <string>

#include "tools/base/descriptor.h"
#include "tools/service/fleet/listener.h"
#include "tools/service/watch/process_end.h"

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

// Detects memory pressure with a PSI trigger of the kernel or, in a systemd service, with the file
// in $MEMORY_PRESSURE_WATCH (systemd.resource-control(5)).
class PressureTrigger {
 public:
  // Pressure: some tasks waited for memory for 200 ms out of 2 s, the window that an unprivileged
  // process may use.
  PressureTrigger();

  // Poll for events(); −1: the kernel offers no trigger: call is_high() instead.
  int descriptor() const { return descriptor_; }
  short events() const { return events_; }

  // Consumes a pending event.
  void acknowledge() const;

  // Without a descriptor: whether some tasks waited for 10 % of the last 10 s.
  bool is_high() const;

 private:
  bool open_named(const char* path);

  Descriptor descriptor_;
  short events_ = 0;
  bool stream_ = false;    // events are bytes to read
  bool disabled_ = false;  // by the variable
};

}  // namespace oomrec::tools::service
