#include "tools/service/alerts/notifier_processes.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tools/base/log.h"

namespace oomrec::tools::service {
namespace {

constexpr std::size_t kMostRunning = 4;
constexpr std::size_t kMostWaiting = 16;

std::string ending(int wait_status) {
  return WIFSIGNALED(wait_status) ? fmt::format("signal {}", WTERMSIG(wait_status))
                                  : fmt::format("exit code {}", WEXITSTATUS(wait_status));
}

}  // namespace

void NotifierProcesses::add(const Notifier& notifier, std::string text) {
  if (waiting_.size() == kMostWaiting) {
    return remark(fmt::format("{}: {} earlier alerts are still being delivered; one was dropped",
                              notifier.name, waiting_.size() + running_.size()));
  }
  waiting_.emplace_back(&notifier, std::move(text));
  start_waiting();
}

void NotifierProcesses::start_waiting() {
  while (!waiting_.empty() && running_.size() < kMostRunning) {
    const auto [notifier, text] = std::move(waiting_.front());
    waiting_.pop_front();
    if (!start(*notifier, text))
      remark(fmt::format("{}: an alert was dropped: {}", notifier->name, std::strerror(errno)));
  }
}

bool NotifierProcesses::start(const Notifier& notifier, const std::string& text) {
  std::optional<ChildProcess> child = ChildProcess::start(notifier.work, text, notifier.timeout);
  if (child) running_.push_back({&notifier, std::move(*child)});
  return child.has_value();
}

void NotifierProcesses::add_descriptors(std::vector<pollfd>& polled) const {
  for (const Running& running : running_) running.child.add_descriptor(polled);
}

std::optional<NotifierProcesses::Clock::time_point> NotifierProcesses::wake_time() const {
  std::optional<Clock::time_point> at;
  for (const Running& running : running_)
    if (const auto next = running.child.wake_time()) at = std::min(at.value_or(*next), *next);
  return at;
}

bool NotifierProcesses::has_ended(Running& running) {
  const bool was_overdue = running.child.is_overdue();
  const std::optional<int> wait_status = running.child.poll();
  if (running.child.is_overdue() && !was_overdue)
    remark(fmt::format("{}: killed because it took longer than {} s", running.notifier->name,
                       running.notifier->timeout.count()));
  if (!wait_status) return false;
  if (!running.child.is_overdue() && *wait_status != 0)
    remark(fmt::format("{}: {}", running.notifier->name, ending(*wait_status)));
  return true;
}

void NotifierProcesses::on_poll(std::span<const pollfd>) {
  std::erase_if(running_, has_ended);
  start_waiting();
}

}  // namespace oomrec::tools::service
