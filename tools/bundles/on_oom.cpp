#include "tools/bundles/on_oom.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "tools/analysis/recording.h"
#include "tools/bundles/bundles.h"
#include "tools/log.h"

namespace oomrec::tools {
namespace {

constexpr std::array kKills = {VerdictCode::cgroup_oom_kill, VerdictCode::system_oom_kill,
                               VerdictCode::killed_near_limit,
                               VerdictCode::terminated_under_pressure};

std::string expanded(const std::string& command, std::uint64_t pid, const std::string& bundle) {
  std::string text;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char word = command[i] == '%' && i + 1 < command.size() ? command[i + 1] : '\0';
    if (word == 'p') {
      text += std::to_string(pid);
    } else if (word == 'b') {
      text += bundle;
    } else {
      text += command[i];
    }
    if (word == 'p' || word == 'b' || word == '%') ++i;
  }
  return text;
}

[[noreturn]] void become_shell(const std::string& text) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  execl("/bin/sh", "sh", "-c", text.c_str(), nullptr);
  _exit(127);
}

}  // namespace

bool is_kill_for_memory(const std::filesystem::path& bundle) {
  const std::string verdict = summary_of(bundle).verdict;
  const bool kill = std::any_of(kKills.begin(), kKills.end(),
                                [&](VerdictCode code) { return verdict == name_of(code); });
  return kill && Recording{bundle / kRecordingName}.header().acted == 0;
}

void run_on_oom(const std::string& command, const std::filesystem::path& bundle, bool wait) {
  const std::string text = expanded(command, summary_of(bundle).pid, bundle.string());
  const pid_t child = fork();
  if (child < 0) return remark(fmt::format("--on-oom-exec: {}", std::strerror(errno)));
  if (child != 0) {
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
    return;
  }
  // Not waited for: a child of nobody's.
  if (!wait && fork() != 0) _exit(0);
  become_shell(text);
}

}  // namespace oomrec::tools
