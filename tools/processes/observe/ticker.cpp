#include "tools/processes/observe/ticker.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace oomrec::tools::processes {
namespace {

Ticker::Clock::duration duration_of(double seconds) {
  constexpr double kMost = 1e9;  // 30 years: more would overflow the clock
  return std::chrono::duration_cast<Ticker::Clock::duration>(
      std::chrono::duration<double>(std::min(seconds, kMost)));
}

}  // namespace

Ticker::Ticker(double interval_s, std::optional<double> duration_s, pid_t process)
    : began_(Clock::now()),
      interval_(duration_of(std::max(interval_s, kShortestInterval_s))),
      end_(duration_s ? std::optional{began_ + duration_of(*duration_s)} : std::nullopt),
      next_(began_ + interval_) {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, signal);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  signals_ = signalfd(-1, &ends, SFD_CLOEXEC);
  if (process > 0) process_ = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
}

bool Ticker::next() {
  while (true) {
    const auto now = Clock::now();
    const auto until = end_ ? std::min(next_, *end_) : next_;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now);
    pollfd polled[] = {{signals_, POLLIN, 0}, {process_, POLLIN, 0}};
    constexpr long kMost_ms = 60'000;
    const int found =
        poll(polled, 2, static_cast<int>(std::clamp<long>(left.count(), 0, kMost_ms)));
    if (found > 0 && polled[0].revents != 0) {
      stop_requested_ = true;
      return false;
    }
    if (found > 0 && polled[1].revents != 0) {
      process_ = -1;
      return true;
    }
    if (end_ && Clock::now() >= *end_) return false;
    if (Clock::now() < next_) continue;
    // Skip the ticks that were missed, for example while the machine was suspended.
    while (next_ <= Clock::now()) next_ += interval_;
    return true;
  }
}

double Ticker::elapsed_s() const {
  return std::chrono::duration<double>(Clock::now() - began_).count();
}

}  // namespace oomrec::tools::processes
