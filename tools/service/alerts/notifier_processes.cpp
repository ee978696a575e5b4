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
constexpr auto kLookForEnd = 100ms;  // of one that cannot be polled

// A file in memory: whoever reads it slowly, or not at all, keeps nobody. −1, with errno.
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

// A group of its own, so that all of it can be ended; nothing of ours but stderr.
[[noreturn]] void be_child(const Courier& courier, int input) {
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(input, STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  constexpr unsigned kFirst = 3;
  syscall(SYS_close_range, kFirst, ~0u, 0);
  _exit(courier.work());
}

std::string ending(int wait_status) {
  return WIFSIGNALED(wait_status) ? fmt::format("signal {}", WTERMSIG(wait_status))
                                  : fmt::format("exit code {}", WEXITSTATUS(wait_status));
}

}  // namespace

Deliveries::~Deliveries() {
  for (const Running& running : running_) close(running.end);
}

void Deliveries::add(const Courier& courier, std::string text) {
  if (waiting_.size() == kMostWaiting) {
    return remark(fmt::format("{}: {} are not done yet: an alert was left out", courier.name,
                              waiting_.size() + running_.size()));
  }
  waiting_.emplace_back(&courier, std::move(text));
  start_waiting();
}

void Deliveries::start_waiting() {
  while (!waiting_.empty() && running_.size() < kMostRunning) {
    const auto [courier, text] = std::move(waiting_.front());
    waiting_.pop_front();
    if (!start(*courier, text))
      remark(fmt::format("{}: an alert was left out: {}", courier->name, std::strerror(errno)));
  }
}

bool Deliveries::start(const Courier& courier, const std::string& text) {
  const int input = file_of(text);
  if (input < 0) return false;
  const pid_t child = fork();
  if (child == 0) be_child(courier, input);
  const int error = errno;
  close(input);
  errno = error;
  if (child < 0) return false;
  setpgid(child, child);  // whoever comes first
  const int end = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  running_.push_back({&courier, child, end, Clock::now() + courier.longest});
  return true;
}

void Deliveries::add_polled(std::vector<pollfd>& polled) const {
  for (const Running& running : running_) polled.push_back({running.end, POLLIN, 0});
}

std::optional<Deliveries::Clock::time_point> Deliveries::wakes_at() const {
  std::optional<Clock::time_point> at;
  for (const Running& running : running_) {
    const auto look = running.end < 0 ? Clock::now() + kLookForEnd : running.ends;
    if (!running.overdue || running.end < 0) at = std::min(at.value_or(look), look);
  }
  return at;
}

bool Deliveries::has_ended(Running& running) {
  if (!running.overdue && Clock::now() >= running.ends) {
    running.overdue = true;
    kill(-running.child, SIGKILL);
    remark(fmt::format("{}: not done within {} s, and ended", running.courier->name,
                       running.courier->longest.count()));
  }
  int wait_status = 0;
  if (waitpid(running.child, &wait_status, WNOHANG) != running.child) return false;
  if (!running.overdue && wait_status != 0)
    remark(fmt::format("{}: {}", running.courier->name, ending(wait_status)));
  if (running.end >= 0) close(running.end);
  return true;
}

void Deliveries::attend(std::span<const pollfd>) {
  std::erase_if(running_, has_ended);
  start_waiting();
}

}  // namespace oomrec::tools::service
