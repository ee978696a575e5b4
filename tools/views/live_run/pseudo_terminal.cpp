#include "tools/views/live_run/pseudo_terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tools/base/error.h"

namespace oomrec::tools::views {

PseudoTerminal::PseudoTerminal(Size size) : ours_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
  std::array<char, 64> name{};
  if (ours_ < 0 || grantpt(ours_) != 0 || unlockpt(ours_) != 0 ||
      ptsname_r(ours_, name.data(), name.size()) != 0) {
    const int error = errno;
    if (ours_ >= 0) close(ours_);
    throw Error{Exit::run_failed,
                fmt::format("no pseudo-terminal could be made: {}", std::strerror(error)),
                "Leave --live out, or mount /dev/pts."};
  }
  name_ = name.data();
  struct termios settings {};
  if (tcgetattr(STDIN_FILENO, &settings) == 0) tcsetattr(ours_, TCSANOW, &settings);
  resize(size);
}

PseudoTerminal::~PseudoTerminal() { close(ours_); }

bool PseudoTerminal::attach() const {
  if (setsid() < 0) return false;
  const int theirs =
      open(name_.c_str(), O_RDWR);  // of a session's leader: its terminal from now on
  if (theirs < 0) return false;
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (isatty(descriptor) == 1 && dup2(theirs, descriptor) < 0) return false;
  if (theirs > STDERR_FILENO) close(theirs);
  return true;
}

void PseudoTerminal::resize(Size size) const {
  const auto cells = [](std::size_t count) { return static_cast<unsigned short>(count); };
  const struct winsize window { cells(size.rows), cells(size.columns), 0, 0 };
  ioctl(ours_, TIOCSWINSZ, &window);
}

void PseudoTerminal::type(std::string_view bytes) const {
  constexpr int kPatience_ms = 200;  // with a program that does not read
  while (!bytes.empty()) {
    struct pollfd room {
      ours_, POLLOUT, 0
    };
    if (poll(&room, 1, kPatience_ms) <= 0 || (room.revents & POLLOUT) == 0) return;
    const ssize_t written = write(ours_, bytes.data(), bytes.size());
    if (written <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace oomrec::tools::views
