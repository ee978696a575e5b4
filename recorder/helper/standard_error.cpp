#include "recorder/helper/standard_error.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>

#include "common/system/files.h"
#include "common/text/text.h"

namespace oomrec::helper {
namespace {

constexpr int kStandardError = 2;
constexpr std::uint64_t kPipeSignal = std::uint64_t{1} << (SIGPIPE - 1);

struct Identity {
  bool known = false;
  dev_t device = 0;
  ino_t inode = 0;
};
constinit Identity g_at_start;

bool stat_standard_error(struct stat& status) noexcept {
  return system::fallible_call(SYS_fstat, kStandardError, reinterpret_cast<long>(&status)) == 0;
}

bool takes_at_once() noexcept {
  pollfd entry{kStandardError, POLLOUT, 0};
  const timespec no_time{};
  const long ready = system::fallible_call(SYS_ppoll, reinterpret_cast<long>(&entry), 1,
                                           reinterpret_cast<long>(&no_time), 0, 8);
  return ready == 1 && (entry.revents & POLLOUT) != 0;
}

// A stopped terminal, or a pipe that another writer fills, would block us even after poll() said
// writable. Our own open file description does not block; setting O_NONBLOCK on the program's would
// affect the program.
int open_again() noexcept {
  return system::open_at(AT_FDCWD, "/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY);
}

long write_once(const struct stat& status, std::string_view text) noexcept {
  const long data = reinterpret_cast<long>(text.data());
  const long bytes = static_cast<long>(text.size());
  if (S_ISSOCK(status.st_mode))
    return system::fallible_call(SYS_sendto, kStandardError, data, bytes,
                                 MSG_DONTWAIT | MSG_NOSIGNAL);
  if (S_ISCHR(status.st_mode) || S_ISFIFO(status.st_mode)) {
    const int reset_after_fork = open_again();
    if (reset_after_fork == -ENXIO) return reset_after_fork;  // a pipe without a reader
    if (reset_after_fork >= 0) {
      const long written = system::fallible_call(SYS_write, reset_after_fork, data, bytes);
      system::close(reset_after_fork);
      return written;
    }
  }
  return system::fallible_call(SYS_write, kStandardError, data, bytes);
}

}  // namespace

void record_standard_error() noexcept {
  struct stat status;
  g_at_start.known = stat_standard_error(status);
  if (!g_at_start.known) return;
  g_at_start.device = status.st_dev;
  g_at_start.inode = status.st_ino;
}

bool write_stderr(InHook, std::string_view text) noexcept {
  struct stat status;
  if (!g_at_start.known || !stat_standard_error(status) || status.st_dev != g_at_start.device ||
      status.st_ino != g_at_start.inode || !takes_at_once())
    return false;

  // Block SIGPIPE, and consume the one that we cause.
  std::uint64_t before = 0;
  std::uint64_t pending = 0;
  const long mask = reinterpret_cast<long>(&kPipeSignal);
  system::fallible_call(SYS_rt_sigprocmask, SIG_BLOCK, mask, reinterpret_cast<long>(&before), 8);
  system::fallible_call(SYS_rt_sigpending, reinterpret_cast<long>(&pending), 8);
  const long written = write_once(status, text.substr(0, 4096));
  if (written == -EPIPE && (pending & kPipeSignal) == 0) {
    const timespec no_time{};
    system::fallible_call(SYS_rt_sigtimedwait, mask, 0, reinterpret_cast<long>(&no_time), 8);
  }
  system::fallible_call(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&before), 0, 8);
  return written == static_cast<long>(text.size());
}

}  // namespace oomrec::helper
