#include "tools/service/alerts/notifier_processes.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "tools/base/log.h"

namespace oomrec::tools::service {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostRunning = 4;
constexpr std::size_t kMostWaiting = 16;
constexpr auto kPollInterval = 100ms;  // for a child without a pidfd

// A file in memory: unlike a pipe, it does not block us if the child reads slowly. −1 on error,
// with errno.
int file_of(const std::string& text) {
  const int file = memfd_create("alert", MFD_CLOEXEC);
  if (file < 0) return -1;
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t bytes = write(file, text.data() + at, text.size() - at);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) {
      close(file);
      return -1;
    }
    at += static_cast<std::size_t>(bytes);
  }
  lseek(file, 0, SEEK_SET);
  return file;
}

// Runs in a process group of its own, so that its children can be killed with it. Inherits only our
// stderr.
[[noreturn]] void run_in_child(const Notifier& notifier, int input) {
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(input, STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  constexpr unsigned kFirst = 3;
  syscall(SYS_close_range, kFirst, ~0u, 0);
  _exit(notifier.work());
}

std::string ending(int wait_status) {
  return WIFSIGNALED(wait_status) ? fmt::format("signal {}", WTERMSIG(wait_status))
                                  : fmt::format("exit code {}", WEXITSTATUS(wait_status));
}

}  // namespace

NotifierProcesses::~NotifierProcesses() {
  for (const Running& running : running_) close(running.pidfd);
}

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
  const int input = file_of(text);
  if (input < 0) return false;
  const pid_t child = fork();
  if (child == 0) run_in_child(notifier, input);
  const int error = errno;
  close(input);
  errno = error;
  if (child < 0) return false;
  setpgid(child, child);  // parent or child, whichever runs first
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  running_.push_back({&notifier, child, pidfd, Clock::now() + notifier.timeout});
  return true;
}

void NotifierProcesses::add_descriptors(std::vector<pollfd>& polled) const {
  for (const Running& running : running_) polled.push_back({running.pidfd, POLLIN, 0});
}

std::optional<NotifierProcesses::Clock::time_point> NotifierProcesses::wake_time() const {
  std::optional<Clock::time_point> at;
  for (const Running& running : running_) {
    const auto next = running.pidfd < 0 ? Clock::now() + kPollInterval : running.deadline;
    if (!running.overdue || running.pidfd < 0) at = std::min(at.value_or(next), next);
  }
  return at;
}

bool NotifierProcesses::has_ended(Running& running) {
  if (!running.overdue && Clock::now() >= running.deadline) {
    running.overdue = true;
    kill(-running.child, SIGKILL);
    remark(fmt::format("{}: killed because it took longer than {} s", running.notifier->name,
                       running.notifier->timeout.count()));
  }
  int wait_status = 0;
  if (waitpid(running.child, &wait_status, WNOHANG) != running.child) return false;
  if (!running.overdue && wait_status != 0)
    remark(fmt::format("{}: {}", running.notifier->name, ending(wait_status)));
  if (running.pidfd >= 0) close(running.pidfd);
  return true;
}

void NotifierProcesses::on_poll(std::span<const pollfd>) {
  std::erase_if(running_, has_ended);
  start_waiting();
}

}  // namespace oomrec::tools::service
