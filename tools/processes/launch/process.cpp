#include "tools/processes/launch/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "common/system/files.h"
#include "tools/base/error.h"
#include "tools/base/programs.h"
#include "tools/base/text.h"
#include "tools/processes/launch/python.h"

namespace oomrec::tools::processes {
namespace {

enum class FileState { missing, not_executable, executable };

FileState state_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return FileState::missing;
  const bool may_run = S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
  return may_run ? FileState::executable : FileState::not_executable;
}

const char* advice_not_executable(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return "Check the path.";
  if (S_ISDIR(status.st_mode)) return "It is a directory.";
  if (!S_ISREG(status.st_mode)) return "It is not a regular file.";
  constexpr mode_t kAnyone = S_IXUSR | S_IXGRP | S_IXOTH;
  if ((status.st_mode & kAnyone) == 0) return "It needs chmod +x.";
  return "You may not execute it, or its file system is mounted noexec.";
}

[[noreturn]] void throw_not_executable(const std::string& path) {
  throw Error{Exit::run_not_executable, fmt::format("{} is not executable", printable(path)),
              advice_not_executable(path)};
}

// The program of that name in PATH: `found`, if it may be run; else `blocked`, the first that may
// not.
struct InPath {
  std::string found, blocked;
};
InPath look_up(const std::string& name) {
  InPath result;
  const char* path = std::getenv("PATH");
  for (const std::string_view part : split(path != nullptr ? path : "/bin:/usr/bin", ':')) {
    std::string candidate = (part.empty() ? "." : std::string{part}) + "/" + name;
    const FileState state = state_of(candidate);
    if (state == FileState::executable) {
      result.found = std::move(candidate);
      break;
    }
    if (state == FileState::not_executable && result.blocked.empty())
      result.blocked = std::move(candidate);
  }
  return result;
}

[[noreturn]] void throw_not_found(const std::string& name) {
  // Debian has no `python` unless asked.
  if (name == "python" && !look_up("python3").found.empty())
    throw Error{Exit::run_not_found, "program not found: python", "Did you mean python3?"};
  const bool is_script = name.ends_with(".py");
  const bool is_path = name.find('/') != std::string::npos;
  throw Error{
      Exit::run_not_found,
      fmt::format("{}: {}", is_script ? "no such file" : "program not found", printable(name)),
      is_script || is_path ? "Check the path." : "Check the name, or give its path: ./NAME."};
}

// The signals that we wait for: all but those of job control, which stop us together with the
// program, and those that our own faults raise.
sigset_t waited_signals() {
  sigset_t set;
  sigfillset(&set);
  for (const int excluded :
       {SIGTSTP, SIGTTIN, SIGTTOU, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS}) {
    sigdelset(&set, excluded);
  }
  return set;
}

bool is_zombie(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == child;
}

// Blocks the signals that we wait for, and resets SIGCHLD in case we inherited it ignored. The
// program gets the inherited state.
class Signals {
 public:
  Signals() : waited_(waited_signals()) {
    struct sigaction default_action {};
    default_action.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &default_action, &child_before_);
    sigprocmask(SIG_BLOCK, &waited_, &mask_before_);
  }
  ~Signals() { restore(); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  void restore() const {
    sigaction(SIGCHLD, &child_before_, nullptr);
    sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  }

  // Waits for the next signal; with an observer, at most until its next sample, which it takes when
  // it is due, however many signals come. Forwards it to `program` if another process sent it.
  // Signals of the kernel (Ctrl-C, a closed terminal) and of the program itself reach the whole
  // group.
  void forward_next(pid_t program, deaths::DeathObserver* observer) {
    timespec until_sample{};
    if (observer != nullptr) {
      const std::uint64_t now_ns = system::monotonic_ns();
      until_sample.tv_nsec = static_cast<long>(next_sample_ns_ - std::min(next_sample_ns_, now_ns));
    }
    siginfo_t info{};
    const int signal = sigtimedwait(&waited_, &info, observer != nullptr ? &until_sample : nullptr);
    // Not after the program's end, which the observer examines itself.
    const bool is_due = observer != nullptr && system::monotonic_ns() >= next_sample_ns_;
    if (is_due && !(signal == SIGCHLD && is_zombie(program))) {
      observer->sample();
      next_sample_ns_ = system::monotonic_ns() + kBetweenSamplesNs;
    }
    const bool by_process = info.si_code <= 0 && info.si_pid != program;
    if (signal <= 0 || signal == SIGCHLD || !by_process) return;
    if (observer != nullptr) observer->signal_forwarded(signal, info.si_pid);
    kill(program, signal);
  }

 private:
  static constexpr std::uint64_t kBetweenSamplesNs = 500'000'000;

  sigset_t waited_;
  sigset_t mask_before_{};
  struct sigaction child_before_ {};
  std::uint64_t next_sample_ns_ = system::monotonic_ns() + kBetweenSamplesNs;
};

// A pipe that exec closes; if exec fails, the child writes its errno to it.
class ExecPipe {
 public:
  ExecPipe() {
    if (pipe2(ends_, O_CLOEXEC) != 0) {
      throw Error{Exit::run_failed,
                  fmt::format("no pipe could be created: {}", std::strerror(errno)),
                  "Raise the number of open files (ulimit -n)."};
    }
  }
  ~ExecPipe() {
    close(ends_[0]);
    close_writer();
  }
  ExecPipe(const ExecPipe&) = delete;
  ExecPipe& operator=(const ExecPipe&) = delete;

  [[noreturn]] void fail_in_child(int error) {
    [[maybe_unused]] const ssize_t written = write(ends_[1], &error, sizeof error);
    _exit(code_of(error));
  }

  static int code_of(int error) { return error == ENOENT ? 127 : 126; }

  // 0: the program runs.
  int error_of_child() {
    close_writer();
    int error = 0;
    ssize_t count = 0;
    do count = read(ends_[0], &error, sizeof error);
    while (count < 0 && errno == EINTR);
    return count == sizeof error ? error : 0;
  }

 private:
  void close_writer() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  int ends_[2] = {-1, -1};
};

[[noreturn]] void throw_not_started(const std::string& path, int error) {
  const bool lacks_interpreter = error == ENOENT;
  throw Error{lacks_interpreter ? Exit::run_not_found : Exit::run_not_executable,
              fmt::format("{} could not be started: {}", printable(path), std::strerror(error)),
              lacks_interpreter  ? "The file exists, but its interpreter or loader does not."
              : error == ENOEXEC ? "Is it a script without a #! line, or built for another machine?"
                                 : "Start it without oomrec to see whether it runs at all."};
}

}  // namespace

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    const FileState state = state_of(name);
    if (state == FileState::executable) return name;
    if (state == FileState::not_executable) throw_not_executable(name);
  } else {
    const InPath in_path = look_up(name);
    if (!in_path.found.empty()) return in_path.found;
    if (!in_path.blocked.empty()) throw_not_executable(in_path.blocked);
  }
  throw_not_found(name);
}

Ended run_program(const std::string& path, const std::vector<std::string>& words,
                  const Settings& settings, deaths::DeathObserver* observer,
                  const AtStart& at_start) {
  const std::vector<char*> arguments = arguments_of(words);
  ExecPipe pipe;
  Signals signals;
  const pid_t child = fork();
  if (child < 0) {
    throw Error{Exit::run_failed,
                fmt::format("no process could be started: {}", std::strerror(errno)),
                "Raise the number of processes (ulimit -u, pids.max)."};
  }
  if (child == 0) {
    for (const auto& [name, value] : settings) setenv(name.c_str(), value.c_str(), 1);
    unsetenv(kPythonVariable);
    signals.restore();
    if (at_start.before_exec && !at_start.before_exec()) pipe.fail_in_child(errno);
    execv(path.c_str(), arguments.data());
    pipe.fail_in_child(errno);
  }

  if (observer != nullptr) observer->started(child);
  const int error = pipe.error_of_child();
  if (error == 0 && at_start.started) at_start.started(child);
  while (true) {
    if (at_start.ended && is_zombie(child)) at_start.ended();
    int status = 0;
    rusage used{};
    const pid_t ended = wait4(-1, &status, WNOHANG, &used);
    if (ended == child) {
      if (observer != nullptr) observer->reaped(used);
      if (error != 0) throw_not_started(path, error);
      return {child, status};
    }
    if (ended <= 0) {
      signals.forward_next(child, observer);
    } else if (!(at_start.is_own && at_start.is_own(ended, status)) && observer != nullptr) {
      observer->reaped_other();
    }
  }
}

}  // namespace oomrec::tools::processes
