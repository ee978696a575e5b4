#include "tools/base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "tools/base/log.h"
#include "tools/base/text.h"

namespace oomrec::tools {
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
