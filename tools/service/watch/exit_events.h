// Receives exit events from the kernel's process connector, which reports to root only. For kernels
// before Linux 6.15, whose pidfds do not report how a process ended.
//
// The connector reports every thread of the machine, with pids of the initial pid namespace. When
// threads end faster than we read, events are lost, and the wait status of those processes is
// unknown.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>

#include "tools/base/descriptor.h"

namespace oomrec::tools::service {

class ExitEvents {
 public:
  // Keeps the wait status of processes for which `awaited` returns true.
  explicit ExitEvents(std::function<bool(pid_t)> awaited);

  // Poll for POLLIN; −1: the kernel does not report to this process.
  int descriptor() const { return descriptor_; }

  // Reads the pending events.
  void read_events();

  // The status of a process that has just ended, as wait() returns it; only once. Waits for the
  // event, which arrives shortly after the end.
  std::optional<int> wait_status(pid_t process);

 private:
  bool subscribe() const;

  const std::function<bool(pid_t)> awaited_;
  std::map<pid_t, int> ended_;
  Descriptor descriptor_;
};

}  // namespace oomrec::tools::service
