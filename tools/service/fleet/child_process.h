// Work in a child process, beside the watcher's poll loop: bounded in time, and reaped without
// blocking.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/base/descriptor.h"
#include "tools/service/fleet/listener.h"

namespace oomrec::tools::service {

// A child that still runs continues after the end of its ChildProcess.
class ChildProcess {
 public:
  using Clock = PollClient::Clock;

  // The child returns the exit code of `work`, and has `input` on its standard input. Its own
  // process group is killed after the timeout. Empty on error, with errno.
  static std::optional<ChildProcess> start(const std::function<int()>& work, std::string_view input,
                                           std::chrono::seconds timeout);

  void add_descriptor(std::vector<pollfd>& polled) const { polled.push_back({pidfd_, POLLIN, 0}); }
  std::optional<Clock::time_point> wake_time() const;

  // Kills a child whose time is over. Returns the wait status of one that has ended, once.
  std::optional<int> poll();
  void end();                                      // kills it, and waits for it
  bool is_overdue() const { return is_overdue_; }  // killed, because its time was over

 private:
  ChildProcess(pid_t child, int pidfd, Clock::time_point deadline)
      : child_(child), pidfd_(pidfd), deadline_(deadline) {}

  pid_t child_;
  Descriptor pidfd_;  // −1: not available
  Clock::time_point deadline_;
  bool is_overdue_ = false;
};

}  // namespace oomrec::tools::service
