#include "tools/views/live_run/pseudo_terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tools/base/error.h"

namespace oomrec::tools::views {

PseudoTerminal::PseudoTerminal(Size size)
    : descriptor_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
  std::array<char, 64> name{};
  if (descriptor_ < 0 || grantpt(descriptor_) != 0 || unlockpt(descriptor_) != 0 ||
      ptsname_r(descriptor_, name.data(), name.size()) != 0) {
    throw Error{Exit::run_failed,
                fmt::format("no pseudo-terminal could be created: {}", std::strerror(errno)),
                "Leave --live out, or mount /dev/pts."};
  }
  name_ = name.data();
  struct termios settings {};
  if (tcgetattr(STDIN_FILENO, &settings) == 0) tcsetattr(descriptor_, TCSANOW, &settings);
  resize(size);
}

bool PseudoTerminal::attach() const {
  if (setsid() < 0) return false;
  // Now the session's controlling terminal. The program gets it: it may be one of the three itself.
  const int terminal = open(name_.c_str(), O_RDWR);  // NOLINT(android-cloexec-open)
  if (terminal < 0) return false;
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (isatty(descriptor) == 1 && dup2(terminal, descriptor) < 0) return false;
  if (terminal > STDERR_FILENO) close(terminal);
  return true;
}

void PseudoTerminal::resize(Size size) const {
  const auto cells = [](std::size_t count) { return static_cast<unsigned short>(count); };
  const struct winsize window { cells(size.rows), cells(size.columns), 0, 0 };
  ioctl(descriptor_, TIOCSWINSZ, &window);
}

void PseudoTerminal::type(std::string_view bytes) const {
  constexpr int kWriteTimeout_ms = 200;  // for a program that does not read
  while (!bytes.empty()) {
    struct pollfd output {
      descriptor_, POLLOUT, 0
    };
    if (poll(&output, 1, kWriteTimeout_ms) <= 0 || (output.revents & POLLOUT) == 0) return;
    const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
    if (written <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

Spool::Spool() {
  std::error_code error;
  const std::filesystem::path directory = std::filesystem::temp_directory_path(error);
  if (!error) file_ = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file_ < 0) file_ = memfd_create("output", MFD_CLOEXEC);
}

void Spool::add(std::string_view bytes) {
  if (file_ < 0 || lost_ != 0 || !write_all(file_, bytes)) lost_ += bytes.size();
}

void Spool::print_to(int descriptor) const {
  std::array<char, 64 * 1024> buffer{};
  off_t at = 0;
  ssize_t count = 0;
  while ((count = pread(file_, buffer.data(), buffer.size(), at)) > 0) {
    if (!write_all(descriptor, {buffer.data(), static_cast<std::size_t>(count)})) return;
    at += count;
  }
}

}  // namespace oomrec::tools::views
