// How processes ended, as the kernel's process connector tells root: for kernels that do not tell
// it by a pidfd (before Linux 6.15).
//
// It tells of every thread of the machine, and pids are those of the first pid namespace. When more
// end than are read, some are lost: how those ended is not known.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>

namespace oomrec::tools::service {

class ExitEvents {
 public:
  // Keeps the ends of processes that are `awaited`.
  explicit ExitEvents(std::function<bool(pid_t)> awaited);
  ~ExitEvents();
  ExitEvents(const ExitEvents&) = delete;
  ExitEvents& operator=(const ExitEvents&) = delete;

  // To be polled for POLLIN; −1: the kernel does not tell us.
  int descriptor() const { return descriptor_; }

  // After an event: takes what there is.
  void take();

  // Of a process that has just ended, as wait() tells it; the kernel tells it a moment later. Once.
  std::optional<int> wait_status(pid_t process);

 private:
  bool listen() const;

  const std::function<bool(pid_t)> awaited_;
  std::map<pid_t, int> ended_;
  int descriptor_ = -1;
};

}  // namespace oomrec::tools::service
