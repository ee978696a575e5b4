// Paces a command that samples for a duration, until a signal stops it, or until the observed
// process ends.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

#include "tools/base/descriptor.h"

namespace oomrec::tools::processes {

class Ticker {
 public:
  using Clock = std::chrono::steady_clock;

  // Blocks SIGINT, SIGTERM and SIGHUP, which stop it. `duration_s`: nullopt is unlimited.
  // `process`: its end causes an immediate tick; 0: none.
  Ticker(double interval_s, std::optional<double> duration_s, pid_t process = 0);

  // Waits for the next tick. False: stop.
  bool next();

  bool stop_requested() const { return stop_requested_; }
  double elapsed_s() const;

 private:
  const Clock::time_point began_;
  const Clock::duration interval_;
  const std::optional<Clock::time_point> end_;
  Clock::time_point next_;
  Descriptor signals_, process_;
  bool stop_requested_ = false;
};

inline constexpr double kShortestInterval_s = 0.01;

}  // namespace oomrec::tools::processes
