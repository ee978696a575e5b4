#include "recorder/helper/command.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "common/system/files.h"
#include "common/system/syscalls.h"
#include "common/system/units.h"
#include "common/text/expand.h"
#include "common/text/text.h"
#include "recorder/helper/helper.h"

namespace oomrec::helper {
namespace {

constexpr std::string_view kKeptVariables[] = {"PATH=", "HOME=", "USER=", "LANG=", "TMPDIR="};
constexpr std::string_view kStandardPath =
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const char* value_of(const char* variable) noexcept { return std::strchr(variable, '=') + 1; }

// The child shares our memory, so the program's signal handlers must not run in it.
void reset_handlers_after_fork() noexcept {
  const system::KernelAction by_default;
  for (int signal = 1; signal <= 64; ++signal)
    system::fallible_call(SYS_rt_sigaction, signal, address(&by_default), 0,
                          static_cast<long>(system::kSignalMaskBytes));
  const std::uint64_t none = 0;
  system::fallible_call(SYS_rt_sigprocmask, SIG_SETMASK, address(&none), 0, 8);
}

[[noreturn]] void become_shell(void* argument) noexcept {
  auto& space = *static_cast<CommandSpace*>(argument);
  reset_handlers_after_fork();
  // The helper has closed all but fd 2.
  system::fallible_call(SYS_openat, AT_FDCWD, address("/dev/null"), O_RDONLY);
  system::fallible_call(SYS_dup3, 2, 1, 0);
  const char* const words[] = {
      "sh", "-c", space.text, "sh", value_of(space.pid), value_of(space.bundle), nullptr};
  system::fallible_call(SYS_execve, address("/bin/sh"), address(words), address(space.environment));
  for (;;) system::fallible_call(SYS_exit, 127);
}

}  // namespace

void keep_environment(const char* const* environment, CommandSpace& space) noexcept {
  std::size_t used = 0, count = 0;
  const auto keep = [&](std::string_view variable) {
    if (used + variable.size() + 1 > sizeof space.variables) return;
    std::memcpy(space.variables + used, variable.data(), variable.size());
    space.variables[used + variable.size()] = '\0';
    space.environment[count++] = space.variables + used;
    used += variable.size() + 1;
  };
  bool has_path = false;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view variable{*environment};
    for (const std::string_view kept : kKeptVariables) {
      if (!variable.starts_with(kept) || count >= std::size(kKeptVariables)) continue;
      keep(variable);
      has_path = has_path || kept == kKeptVariables[0];
    }
  }
  if (!has_path) keep(kStandardPath);
  space.environment[count++] = space.pid;
  space.environment[count++] = space.bundle;
  space.environment[count] = nullptr;
}

bool set_command(std::string_view pattern, int pid, std::string_view bundle,
                 CommandSpace& space) noexcept {
  text::Text number{space.pid}, path{space.bundle};
  number.add(text::kPidVariable).add('=').signed_number(pid);
  path.add(text::kBundleVariable).add('=').add(bundle);
  return !path.truncated() &&
         text::expand_command(pattern, pid, bundle, space.text, sizeof space.text);
}

void run_command(CommandSpace& space, unsigned seconds) noexcept {
  const std::uint64_t deadline = system::monotonic_ns() + seconds * kSecondNs;
  // CLONE_VFORK suspends us until the exec.
  const long child = clone_onto(space.stack + sizeof space.stack, CLONE_VM | CLONE_VFORK | SIGCHLD,
                                nullptr, nullptr, become_shell, &space);
  if (child < 0) return;
  const timespec pause{0, 5'000'000};
  while (system::fallible_call(SYS_wait4, child, 0, WNOHANG) == 0 &&
         system::monotonic_ns() < deadline)
    system::fallible_call(SYS_nanosleep, address(&pause));
}

}  // namespace oomrec::helper
