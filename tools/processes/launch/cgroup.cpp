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
#include "tools/base/directory.h"
#include "tools/base/error.h"
#include "tools/base/large_stack.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/recover/orphans.h"
#include "tools/bundles/store/writing.h"
#include "tools/deaths/current_health.h"
#include "tools/recording/live/mapping.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::processes {
namespace {

// Returns 0 or an errno. Does not allocate: the guard and a forked child also call it.
int write_text(const char* path, const char* text) noexcept {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = write(fd, text, std::strlen(text)) < 0 ? errno : 0;
  close(fd);
  return error;
}
int write_text(const std::string& path, const std::string& text) {
  return write_text(path.c_str(), text.c_str());
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

// The file and text that end the pause.
const char* release_file(bool v1) noexcept { return v1 ? "/memory.oom_control" : "/memory.high"; }
const char* release_text(bool v1) noexcept { return v1 ? "0" : "max"; }

// A v2 cgroup that delegates controllers may not contain processes: move to a leaf beside the
// program's.
void delegate_memory(const std::string& own) {
  int error = write_text(own + "/cgroup.subtree_control", "+memory");
  if (error == EBUSY) {
    const std::string leaf = fmt::format("{}/oomrec-launcher-{}", own, getpid());
    if (mkdir(leaf.c_str(), 0755) == 0 && write_text(leaf + "/cgroup.procs", "0") == 0)
      error = write_text(own + "/cgroup.subtree_control", "+memory");
  }
  if (error != 0)
    fail(fmt::format("{} does not delegate the memory controller", printable(own)), error);
}

}  // namespace

ProgramCgroup::ProgramCgroup(std::uint64_t bytes) : bytes_(bytes) {
  const auto directories = std::make_unique<limit::CgroupDirectories>();
  limit::Ceilings unused;
  limit::read_cgroup(OutsideHooks::in_hook(), unused, directories.get());
  v1_ = directories->v1;
  std::string own = directories->own;
  if (own.empty() || access(own.c_str(), F_OK) != 0) fail("no memory cgroup is mounted", ENOENT);
  while (own.ends_with('/')) own.pop_back();
  if (!v1_) delegate_memory(own);
  path_ = fmt::format("{}/oomrec-{}", own, getpid());
  if (mkdir(path_.c_str(), 0755) != 0)
    fail(fmt::format("no cgroup could be created in {}", printable(own)), errno);
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
  if (const int error = write_text(path_ + file, std::to_string(bytes_)); error != 0)
    fail(fmt::format("no limit of {} could be set", size_text(bytes_)), error);
  // Where there is swap, the kernel would swap at the limit. v1 counts both together. A kernel
  // without swap accounting has neither file.
  const int no_swap =
      v1_ ? write_text(path_ + "/memory.memsw.limit_in_bytes", std::to_string(bytes_))
          : write_text(path_ + "/memory.swap.max", "0");
  if (no_swap != 0 && no_swap != ENOENT) fail("its swap could not be limited", no_swap);
  if (v1_) return;
  constexpr std::uint64_t kFence = std::uint64_t{16} << 20;
  const std::uint64_t below = std::min(bytes_ / 4, std::max(bytes_ / 32, kFence));
  if (const int error = write_text(path_ + "/memory.high", std::to_string(bytes_ - below));
      error != 0)
    fail("memory.high could not be set below the limit", error);
}

void ProgramCgroup::watch() {
  stop_ = eventfd(0, EFD_CLOEXEC);
  if (!v1_) {
    event_ = open((path_ + "/memory.events").c_str(), O_RDONLY | O_CLOEXEC);
    if (event_ < 0) fail("its events cannot be observed", errno);
    return;
  }
  event_ = eventfd(0, EFD_CLOEXEC);
  const std::string control = path_ + "/memory.oom_control";
  const int observed = open(control.c_str(), O_RDONLY | O_CLOEXEC);
  int error = observed < 0 ? errno : 0;
  if (error == 0)
    error = write_text(path_ + "/cgroup.event_control", fmt::format("{} {}", event_, observed));
  if (observed >= 0) close(observed);
  if (error == 0) error = write_text(control, "1");
  if (error != 0) fail("its limit cannot be observed", error);
}

// The guard has its own session, blocks all signals and closes all descriptors: it must survive the
// command, and must not keep a pipe open whose reader waits for its end.
void ProgramCgroup::guard() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("no pipe could be created", errno);
  const std::string file = path_ + release_file(v1_);
  const pid_t guard = fork();
  if (guard < 0) fail("no process could be started", errno);
  if (guard == 0) {
    setsid();
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    dup2(ends[0], 0);
    close_range(1, ~0U, 0);
    char nothing = 0;
    while (read(0, &nothing, 1) < 0 && errno == EINTR) continue;
    write_text(file.c_str(), release_text(v1_));
    _exit(0);
  }
  close(ends[0]);
  guard_pipe_ = ends[1];
}

ProgramCgroup::~ProgramCgroup() {
  release();
  for (const int fd : {guard_pipe_, event_, stop_})
    if (fd >= 0) close(fd);
  // The kernel takes a moment to remove dead processes from the cgroup.
  for (int tries = 0; rmdir(path_.c_str()) != 0 && errno == EBUSY && tries < 100; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
}

bool ProgramCgroup::enter() const noexcept {
  char path[4200];
  system::Text text{path};
  text << path_ << "/cgroup.procs";
  errno = write_text(path, "0");
  return errno == 0;
}

bool ProgramCgroup::wait_for_limit() const {
  while (true) {
    pollfd observed[] = {{event_, static_cast<short>(v1_ ? POLLIN : POLLPRI), 0},
                         {stop_, POLLIN, 0}};
    if (poll(observed, 2, -1) < 0 && errno != EINTR) return false;
    if (observed[1].revents != 0) return false;
    if (observed[0].revents == 0) continue;
    std::uint64_t events = 0;
    if (v1_ && read(event_, &events, sizeof events) < 0) return false;
    const std::string state = file_text(path_ + (v1_ ? "/memory.oom_control" : "/memory.events"));
    const std::string_view paused = system::field(state, v1_ ? "under_oom " : "high ");
    if (system::number_in(paused) != 0) return true;
  }
}

void ProgramCgroup::stop_waiting() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_, &one, sizeof one);
}

void ProgramCgroup::release() const { write_text(path_ + release_file(v1_), release_text(v1_)); }

std::vector<pid_t> ProgramCgroup::processes() const {
  std::vector<pid_t> processes;
  std::ifstream file{path_ + "/cgroup.procs"};
  for (pid_t pid = 0; file >> pid;) processes.push_back(pid);
  return processes;
}

CgroupLimitGuard::CgroupLimitGuard(const ProgramCgroup& cgroup, const Options& options)
    : cgroup_(cgroup),
      dump_directories_{absolute_path(options.dump_dir)},
      session_directory_(options.session_dir),
      quiet_(options.quiet) {
  // Signals must reach the thread that forwards them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread{[this] {
    if (!cgroup_.wait_for_limit()) return;
    try {
      on_large_stack([this] { write_bundle(); });
    } catch (const std::exception& error) {
      remark(error.what());
    }
    cgroup_.release();
  }};
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

CgroupLimitGuard::~CgroupLimitGuard() {
  cgroup_.stop_waiting();
  thread_.join();
}

// Writes the bundle of the largest recorded process in the cgroup. The bundle lists the others.
void CgroupLimitGuard::write_bundle() const {
  const std::vector<pid_t> processes = cgroup_.processes();
  std::unique_ptr<recording::Recording> largest;
  for (const bundles::Session& session :
       bundles::sessions_of(dump_directories_, session_directory_)) {
    const bool inside = std::ranges::find(processes, session.pid) != processes.end();
    if (!session.alive || !inside) continue;
    recording::enter_look(session.path, session.pid);
    auto recording = std::make_unique<recording::Recording>(session.path);
    if (largest == nullptr || recording->held_bytes() > largest->held_bytes())
      largest = std::move(recording);
  }
  if (largest == nullptr) return;

  const std::string directory = largest->text(largest->header().dump_directory);
  bundle::Cause cause;
  cause.trigger = Trigger::near_limit;
  const auto health = deaths::current_health(largest->view());
  cause.health = health.get();
  const bundles::WriteResult written = bundles::write_bundle(*largest, cause, directory);
  if (written.bundle.empty()) {
    remark(written.problem);
  } else if (!quiet_) {
    remark(fmt::format("the program reached its cgroup's limit of {}: bundle {}",
                       size_text(cgroup_.bytes()), printable(written.bundle.string())));
  }
}

}  // namespace oomrec::tools::processes
