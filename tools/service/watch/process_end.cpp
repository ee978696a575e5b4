#include "tools/service/watch/process_end.h"

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "common/system/files.h"
#include "tools/deaths/ending.h"

namespace oomrec::tools::service {
namespace {

// From linux/pidfd.h of Linux 6.15: the first 64 bytes. The ioctl number contains this size.
struct PidfdInfo {
  std::uint64_t mask;
  std::uint64_t cgroup;
  std::uint32_t ids[11];
  std::int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);
constexpr std::uint64_t kInfoExit = 1u << 3;

// A waiting parent reaps within milliseconds. Bounds our wait for an exit with 0 of which the
// parent takes no notice.
constexpr int kReads = 20;
constexpr auto kBetweenReads = std::chrono::milliseconds{10};

// False: the kernel does not support the call.
bool read_info(int descriptor, PidfdInfo& info) {
  info = {};
  info.mask = kInfoExit;
  return std::getenv("OOMREC_NO_PIDFD_INFO") == nullptr && ioctl(descriptor, kGetInfo, &info) == 0;
}

bool has_exit_code(const PidfdInfo& info) { return (info.mask & kInfoExit) != 0; }

}  // namespace

ProcessEnd ProcessEnd::of(const session::Header& process) {
  const long descriptor = syscall(SYS_pidfd_open, process.pid, 0);
  if (descriptor < 0) return {};
  ProcessEnd found{static_cast<int>(descriptor), process.pid, process.start_ticks};
  // Compared while the descriptor is open, so that the pid cannot be reused in between.
  return system::start_ticks(process.pid) == process.start_ticks ? std::move(found) : ProcessEnd{};
}

// Linux 6.13 supports the call without the exit code: try it on a child.
bool ProcessEnd::has_wait_status() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  if (child < 0) return false;
  const ProcessEnd end{static_cast<int>(syscall(SYS_pidfd_open, child, 0))};
  waitpid(child, nullptr, 0);
  PidfdInfo info;
  return read_info(end.descriptor_, info) && has_exit_code(info);
}

std::optional<int> ProcessEnd::wait_status() const {
  PidfdInfo info;
  for (int read = 0; read < kReads; ++read) {
    // 0 may mean that the kernel hides the status.
    if (const auto status = deaths::status_of_zombie(process_, start_ticks_);
        status.value_or(0) != 0)
      return status;
    if (!read_info(descriptor_, info)) return {};
    if (has_exit_code(info)) return info.exit_code;
    std::this_thread::sleep_for(kBetweenReads);
  }
  return {};
}

}  // namespace oomrec::tools::service
