#include "tools/bundles/recover/on_oom.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>

#include "common/text/expand.h"
#include "common/verdict/verdict.h"
#include "tools/base/terminal.h"
#include "tools/bundles/store/bundles.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::bundles {
namespace {

// The user's command for one bundle: what sh gets.
struct ShellCommand {
  std::string text;  // % words expanded
  std::string pid, bundle;
};

// Space for %b, which may occur several times.
constexpr std::size_t kPathBytes = 64 * 1024;

[[noreturn]] void become_shell(const ShellCommand& command,
                               const decltype(OnOomCommand::environment)& environment) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  setenv(text::kPidVariable.data(), command.pid.c_str(), 1);
  setenv(text::kBundleVariable.data(), command.bundle.c_str(), 1);
  execl("/bin/sh", "sh", "-c", command.text.c_str(), "sh", command.pid.c_str(),
        command.bundle.c_str(), nullptr);
  _exit(127);
}

// Empty, with a remark, if it is too long.
std::optional<ShellCommand> expanded(const OnOomCommand& command,
                                     const std::filesystem::path& bundle) {
  const auto pid = static_cast<std::int64_t>(summary_of(bundle).pid);
  std::string text(command.text.size() + kPathBytes, '\0');
  if (text::expand_command(command.text, pid, bundle.native(), text.data(), text.size()))
    return ShellCommand{text.c_str(), std::to_string(pid), bundle.native()};
  remark("--on-oom-exec: the command is too long");
  return std::nullopt;
}

// Waits for the child's end.
void in_child(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child < 0) return remark(fmt::format("--on-oom-exec: {}", std::strerror(errno)));
  if (child == 0) {
    work();
    _exit(0);
  }
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
}

}  // namespace

bool needs_on_oom_command(const std::filesystem::path& path) {
  const auto verdict = value_named<VerdictCode>(kVerdictNames, summary_of(path).verdict);
  return verdict && verdict::is_death_caused_by_memory(*verdict) &&
         recording::Recording{recording_in(path)}.header().acted == 0;
}

void run_on_oom(const OnOomCommand& command, const std::filesystem::path& bundle) {
  if (const auto text = expanded(command, bundle)) {
    in_child([&] { become_shell(*text, command.environment); });
  }
}

// Forks twice: the grandchild is reparented to init, which reaps it.
void start_on_oom(const OnOomCommand& command, const std::filesystem::path& bundle) {
  if (const auto text = expanded(command, bundle)) {
    in_child([&] {
      if (fork() == 0) become_shell(*text, command.environment);
    });
  }
}

}  // namespace oomrec::tools::bundles
