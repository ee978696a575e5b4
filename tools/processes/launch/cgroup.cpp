#include "tools/processes/launch/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>
#include <thread>

#include "common/limits/ceilings.h"
#include "common/system/files.h"
#include "common/system/text.h"
#include "tools/base/error.h"
#include "tools/base/text.h"

namespace oomrec::tools::processes {
namespace {

// 0 or an errno. No allocation: for the guard and for a forked child as well.
int put(const char* path, const char* text) noexcept {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = write(fd, text, std::strlen(text)) < 0 ? errno : 0;
  close(fd);
  return error;
}
int put(const std::string& path, const std::string& text) {
  return put(path.c_str(), text.c_str());
}

[[noreturn]] void fail(const std::string& what, int error) {
  throw Error{
      Exit::run_failed, fmt::format("{}: {}", what, std::strerror(error)),
      error == EBUSY
          ? "Start it in a scope of its own: systemd-run --user --scope -p Delegate=yes oomrec run "
            "…"
          : "Be root, or use systemd-run --user --scope -p Delegate=yes; --limit SIZE needs no "
            "cgroup."};
}

std::string file_text(const std::string& path) {
  std::ifstream file{path};
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// What lets the kernel decide: v1's switch, v2's fence.
const char* release_file(bool v1) noexcept { return v1 ? "/memory.oom_control" : "/memory.high"; }
const char* release_text(bool v1) noexcept { return v1 ? "0" : "max"; }

// Processes may not be in a v2 cgroup that hands controllers down: we move to a leaf beside the
// program's.
void hand_down_memory(const std::string& own) {
  int error = put(own + "/cgroup.subtree_control", "+memory");
  if (error == EBUSY) {
    const std::string leaf = fmt::format("{}/oomrec-launcher-{}", own, getpid());
    if (mkdir(leaf.c_str(), 0755) == 0 && put(leaf + "/cgroup.procs", "0") == 0)
      error = put(own + "/cgroup.subtree_control", "+memory");
  }
  if (error != 0) fail(fmt::format("{} hands no memory controller down", printable(own)), error);
}

}  // namespace

ProgramCgroup::ProgramCgroup(std::uint64_t bytes) : bytes_(bytes) {
  const auto place = std::make_unique<limit::CgroupPlace>();
  limit::Ceilings unused;
  limit::read_cgroup(OutsideHooks::in_hook(), unused, place.get());
  v1_ = place->v1;
  std::string own = place->own;
  if (own.empty() || access(own.c_str(), F_OK) != 0) fail("no memory cgroup is mounted", ENOENT);
  while (own.ends_with('/')) own.pop_back();
  if (!v1_) hand_down_memory(own);
  path_ = fmt::format("{}/oomrec-{}", own, getpid());
  if (mkdir(path_.c_str(), 0755) != 0)
    fail(fmt::format("no cgroup could be made in {}", printable(own)), errno);
  try {
    limit();
    watch();
    guard();
  } catch (const Error&) {
    rmdir(path_.c_str());
    throw;
  }
}

void ProgramCgroup::limit() {
  const char* const file = v1_ ? "/memory.limit_in_bytes" : "/memory.max";
  if (const int error = put(path_ + file, std::to_string(bytes_)); error != 0)
    fail(fmt::format("no limit of {} could be set", size_text(bytes_)), error);
  if (v1_) return;
  constexpr std::uint64_t kFence = std::uint64_t{16} << 20;
  const std::uint64_t below = std::min(bytes_ / 4, std::max(bytes_ / 32, kFence));
  if (const int error = put(path_ + "/memory.high", std::to_string(bytes_ - below)); error != 0)
    fail("no fence could be set below the limit", error);
}

void ProgramCgroup::watch() {
  stop_ = eventfd(0, EFD_CLOEXEC);
  if (!v1_) {
    event_ = open((path_ + "/memory.events").c_str(), O_RDONLY | O_CLOEXEC);
    if (event_ < 0) fail("its events cannot be watched", errno);
    return;
  }
  event_ = eventfd(0, EFD_CLOEXEC);
  const std::string control = path_ + "/memory.oom_control";
  const int watched = open(control.c_str(), O_RDONLY | O_CLOEXEC);
  int error = watched < 0 ? errno : 0;
  if (error == 0)
    error = put(path_ + "/cgroup.event_control", fmt::format("{} {}", event_, watched));
  if (watched >= 0) close(watched);
  if (error == 0) error = put(control, "1");
  if (error != 0) fail("its limit cannot be watched", error);
}

// A process of its own, away from our terminal, signals and descriptors: it must survive us, and
// nobody may wait for what it would hold open.
void ProgramCgroup::guard() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("no pipe could be made", errno);
  const std::string file = path_ + release_file(v1_);
  const pid_t guard = fork();
  if (guard < 0) fail("no process could be made", errno);
  if (guard == 0) {
    setsid();
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    dup2(ends[0], 0);
    close_range(1, ~0U, 0);
    char nothing = 0;
    while (read(0, &nothing, 1) < 0 && errno == EINTR) continue;
    put(file.c_str(), release_text(v1_));
    _exit(0);
  }
  close(ends[0]);
  guard_pipe_ = ends[1];
}

ProgramCgroup::~ProgramCgroup() {
  release();
  for (const int fd : {guard_pipe_, event_, stop_})
    if (fd >= 0) close(fd);
  // The kernel takes a moment to let go of what has just died.
  for (int tries = 0; rmdir(path_.c_str()) != 0 && errno == EBUSY && tries < 100; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
}

bool ProgramCgroup::enter() const noexcept {
  char path[4200];
  system::Text text{path};
  text << path_ << "/cgroup.procs";
  errno = put(path, "0");
  return errno == 0;
}

bool ProgramCgroup::wait_for_brink() const {
  while (true) {
    pollfd watched[] = {{event_, static_cast<short>(v1_ ? POLLIN : POLLPRI), 0},
                        {stop_, POLLIN, 0}};
    if (poll(watched, 2, -1) < 0 && errno != EINTR) return false;
    if (watched[1].revents != 0) return false;
    if (watched[0].revents == 0) continue;
    std::uint64_t events = 0;
    if (v1_ && read(event_, &events, sizeof events) < 0) return false;
    const std::string state = file_text(path_ + (v1_ ? "/memory.oom_control" : "/memory.events"));
    const std::string_view stands = system::field(state, v1_ ? "under_oom " : "high ");
    if (system::number_in(stands) != 0) return true;
  }
}

void ProgramCgroup::stop_waiting() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_, &one, sizeof one);
}

void ProgramCgroup::release() const { put(path_ + release_file(v1_), release_text(v1_)); }

std::vector<pid_t> ProgramCgroup::processes() const {
  std::vector<pid_t> processes;
  std::ifstream file{path_ + "/cgroup.procs"};
  for (pid_t pid = 0; file >> pid;) processes.push_back(pid);
  return processes;
}

}  // namespace oomrec::tools::processes
