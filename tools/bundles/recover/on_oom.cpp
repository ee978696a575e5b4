#include "tools/bundles/recover/on_oom.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "common/text/expand.h"
#include "common/verdict/verdict.h"
#include "tools/base/log.h"
#include "tools/bundles/store/bundles.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::bundles {
namespace {

// For some bundles' paths in place of %b.
constexpr std::size_t kPathRoom = 64 * 1024;

[[noreturn]] void become_shell(const std::string& text) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  execl("/bin/sh", "sh", "-c", text.c_str(), nullptr);
  _exit(127);
}

}  // namespace

bool is_kill_for_memory(const std::filesystem::path& path) {
  const std::string verdict = summary_of(path).verdict;
  const auto name = std::find(kVerdictNames.begin(), kVerdictNames.end(), verdict);
  const bool kill =
      name != kVerdictNames.end() &&
      verdict::is_death_by_memory(static_cast<VerdictCode>(name - kVerdictNames.begin()));
  return kill && recording::Recording{path / kRecordingName}.header().acted == 0;
}

void run_on_oom(const std::string& command, const std::filesystem::path& path, bool wait) {
  const auto pid = static_cast<std::int64_t>(summary_of(path).pid);
  std::string text(command.size() + kPathRoom, '\0');
  if (!text::expand_command(command, pid, path.native(), text.data(), text.size()))
    return remark("--on-oom-exec: the command is too long");
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

}  // namespace oomrec::tools::bundles
