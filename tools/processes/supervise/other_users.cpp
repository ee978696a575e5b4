#include "tools/processes/supervise/other_users.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "common/system/files.h"
#include "common/system/units.h"
#include "tools/base/directory.h"
#include "tools/base/terminal.h"

namespace oomrec::tools::processes {
namespace {

// Not the directories of the user that this process was.
void set_home(uid_t user) {
  for (const char* const name : {"XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "HOME"}) unsetenv(name);
  if (const passwd* const entry = getpwuid(user)) setenv("HOME", entry->pw_dir, 1);
  system::read_roots(environ);
}

bool become(const User& user) {
  set_home(user.user);
  return setgroups(0, nullptr) == 0 && setresgid(user.group, user.group, user.group) == 0 &&
         setresuid(user.user, user.user, user.user) == 0;
}

// Shared with the child. What it has written there is that user's choice.
class Answer {
 public:
  Answer()
      : words_(static_cast<pid_t*>(
            mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~Answer() {
    if (is_there()) munmap(words_, kBytes);
  }
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  bool is_there() const { return words_ != MAP_FAILED; }
  void write(const std::set<pid_t>& processes) {
    std::size_t at = 0;  // a zero ends the list
    for (const pid_t pid : processes)
      if (pid > 0 && at < kMostProcesses) words_[at++] = pid;
  }
  std::set<pid_t> read() const { return {words_, std::find(words_, words_ + kMostProcesses, 0)}; }

 private:
  static constexpr std::size_t kMostProcesses = 100'000;
  static constexpr std::size_t kBytes = kMostProcesses * sizeof(pid_t);
  pid_t* words_;
};

[[noreturn]] void work_as(const User& user, const std::function<std::set<pid_t>()>& work,
                          Answer& answer) {
  try {
    if (become(user)) answer.write(work());
  } catch (const std::exception& error) {
    remark(error.what());
  }
  std::fflush(nullptr);
  _exit(0);  // what is to be done at an exit is the parent's
}

}  // namespace

std::optional<User> user_of(pid_t pid) {
  struct stat status {};
  if (stat(fmt::format("{}/{}", system::g_roots.proc, pid).c_str(), &status) != 0)
    return std::nullopt;
  return User{status.st_uid, status.st_gid};
}

std::set<User> users_who_recorded_since(std::uint64_t realtime_ns,
                                        const std::vector<std::filesystem::path>& bases) {
  std::set<User> users;
  for (const std::filesystem::path& base : bases) {
    for (const auto& entry : entries_of(base)) {
      struct stat status {};
      if (!entry.path().filename().native().starts_with("oomrec-") ||
          lstat(entry.path().c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
        continue;
      // Creating a file in it has changed the directory. The clock of file systems lags a little.
      const auto changed_s = static_cast<std::uint64_t>(status.st_mtim.tv_sec);
      if (status.st_uid != geteuid() && changed_s + 1 >= realtime_ns / kSecondNs)
        users.insert({status.st_uid, status.st_gid});
    }
  }
  return users;
}

std::set<pid_t> as_user(const User& user, const std::function<std::set<pid_t>()>& work) {
  Answer answer;
  if (!answer.is_there()) return {};
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return {};
  if (child == 0) work_as(user, work, answer);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return answer.read();
}

}  // namespace oomrec::tools::processes
