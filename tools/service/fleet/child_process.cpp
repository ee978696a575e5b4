#include "tools/service/fleet/child_process.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "tools/base/programs.h"

namespace oomrec::tools::service {
namespace {

using namespace std::chrono_literals;

constexpr auto kPollInterval = 100ms;  // for a child without a pidfd

// Runs in a process group of its own, so that its children can be killed with it. Inherits only our
// stderr.
[[noreturn]] void run_in_child(const std::function<int()>& work, int input) {
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(input, STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  constexpr unsigned kFirst = 3;
  syscall(SYS_close_range, kFirst, ~0u, 0);
  _exit(work());
}

}  // namespace

std::optional<ChildProcess> ChildProcess::start(const std::function<int()>& work,
                                                std::string_view input,
                                                std::chrono::seconds timeout) {
  const Descriptor file = file_in_memory(input);
  if (file < 0) return {};
  const pid_t child = fork();
  if (child == 0) run_in_child(work, file);
  if (child < 0) return {};
  setpgid(child, child);  // parent or child, whichever runs first
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  return ChildProcess{child, pidfd, Clock::now() + timeout};
}

std::optional<ChildProcess::Clock::time_point> ChildProcess::wake_time() const {
  if (pidfd_ < 0) return Clock::now() + kPollInterval;
  if (is_overdue_) return {};
  return deadline_;
}

std::optional<int> ChildProcess::poll() {
  if (!is_overdue_ && Clock::now() >= deadline_) {
    is_overdue_ = true;
    kill(-child_, SIGKILL);
  }
  int wait_status = 0;
  if (waitpid(child_, &wait_status, WNOHANG) != child_) return {};
  return wait_status;
}

void ChildProcess::end() {
  kill(-child_, SIGKILL);
  while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) continue;
}

}  // namespace oomrec::tools::service
