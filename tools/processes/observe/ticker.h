// The beat of a command that looks again and again until its time is over, it is told to stop, or
// what it looks at has ended.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

namespace oomrec::tools::processes {

class Ticker {
 public:
  using Clock = std::chrono::steady_clock;

  // SIGINT, SIGTERM and SIGHUP are blocked from now on, and end it. `duration_s`: nothing is
  // without end. `process`: its end is a beat before its time; 0: none.
  Ticker(double interval_s, std::optional<double> duration_s, pid_t process = 0);
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  // Waits for the next beat. False: there is none.
  bool next();

  bool told_to_stop() const { return told_to_stop_; }
  double elapsed_s() const;

 private:
  const Clock::time_point began_;
  const Clock::duration interval_;
  const std::optional<Clock::time_point> end_;
  Clock::time_point next_;
  int signals_ = -1;
  int process_ = -1;
  bool told_to_stop_ = false;
};

inline constexpr double kShortestInterval_s = 0.01;

}  // namespace oomrec::tools::processes
