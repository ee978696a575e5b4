#include "tools/service/watch/process_end.h"

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "common/system/files.h"

namespace oomrec::tools::service {
namespace {

// linux/pidfd.h of Linux 6.15; the first 64 bytes, which is what its size in the number says.
struct PidfdInfo {
  std::uint64_t mask;
  std::uint64_t cgroup;
  std::uint32_t ids[11];
  std::int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);
constexpr std::uint64_t kInfoExit = 1u << 3;

// A parent that waits does so within milliseconds; one that does not keeps us no longer than this.
constexpr int kLooks = 20;
constexpr auto kBetweenLooks = std::chrono::milliseconds{10};

// False: it does not tell.
bool ask(int descriptor, PidfdInfo& info) {
  info = {};
  info.mask = kInfoExit;
  return std::getenv("OOMREC_NO_PIDFD_INFO") == nullptr && ioctl(descriptor, kGetInfo, &info) == 0;
}

bool tells_exit(const PidfdInfo& info) { return (info.mask & kInfoExit) != 0; }

}  // namespace

ProcessEnd::~ProcessEnd() {
  if (descriptor_ >= 0) close(descriptor_);
}

ProcessEnd ProcessEnd::of(const session::Header& process) {
  const long descriptor = syscall(SYS_pidfd_open, process.pid, 0);
  if (descriptor < 0) return {};
  ProcessEnd found{static_cast<int>(descriptor)};
  // Asked with the descriptor at hand: the number cannot pass to another process in between.
  return system::start_ticks(process.pid) == process.start_ticks ? std::move(found) : ProcessEnd{};
}

// Linux 6.13 has the question, but not this answer: a child that has ended shows it.
bool ProcessEnd::kernel_tells() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  if (child < 0) return false;
  const ProcessEnd end{static_cast<int>(syscall(SYS_pidfd_open, child, 0))};
  waitpid(child, nullptr, 0);
  PidfdInfo info;
  return ask(end.descriptor_, info) && tells_exit(info);
}

std::optional<int> ProcessEnd::wait_status() const {
  PidfdInfo info;
  for (int look = 0; look < kLooks; ++look) {
    if (!ask(descriptor_, info)) return {};
    if (tells_exit(info)) return info.exit_code;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return {};
}

}  // namespace oomrec::tools::service
