#include "tools/base/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "tools/base/environment.h"
#include "tools/base/text.h"

namespace oomrec::tools {

Terminal::Terminal(int descriptor) {
  const bool is_allowed = environment_variable("NO_COLOR").empty();
  const char* const term = std::getenv("TERM");
  const bool is_dumb = term == nullptr || std::string_view{term} == "dumb";
  coloured_ = is_allowed && !is_dumb && isatty(descriptor) == 1;
}

std::string Terminal::paint(Colour colour, std::string_view text) const {
  static constexpr std::array<std::string_view, 7> kCodes = {"", "1", "2", "31", "33", "32", "36"};
  if (!coloured_ || colour == Colour::plain || text.empty()) return std::string{text};
  std::string painted = "\x1b[";
  painted += kCodes[static_cast<std::size_t>(colour)];
  painted += 'm';
  painted += text;
  painted += "\x1b[0m";
  return painted;
}

void write_stderr(std::string_view text) noexcept {
  sigset_t pipe, pending, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  std::fwrite(text.data(), 1, text.size(), stderr);
  if (sigismember(&pending, SIGPIPE) == 0) {
    constexpr timespec kNotAtAll{};
    while (sigtimedwait(&pipe, nullptr, &kNotAtAll) < 0 && errno == EINTR) continue;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void remark(const std::string& text) { write_stderr(fmt::format("oomrec: {}\n", text)); }

namespace {

constexpr std::chrono::milliseconds kDelay{500};
constexpr std::chrono::milliseconds kInterval{100};
constexpr std::size_t kStepsBetweenChecks = 256;

}  // namespace

Progress::Progress(std::string_view what, std::size_t steps)
    : what_(what),
      steps_(steps),
      enabled_(isatty(STDERR_FILENO) == 1),
      next_(Clock::now() + kDelay) {}

Progress::~Progress() {
  if (shown_) write_stderr("\r\x1b[K");
}

void Progress::step() {
  if (++done_ % kStepsBetweenChecks == 0 && enabled_ && Clock::now() >= next_) show();
}

void Progress::show() {
  write_stderr(fmt::format("\r{} {} of {}", what_, count_text(done_), count_text(steps_)));
  std::fflush(stderr);
  shown_ = true;
  next_ = Clock::now() + kInterval;
}

}  // namespace oomrec::tools
