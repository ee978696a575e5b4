#include "tools/processes/observe/live_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "tools/base/log.h"
#include "tools/base/text.h"

namespace oomrec::tools::processes {

LiveLine::LiveLine() : is_terminal_(isatty(STDERR_FILENO) == 1) {}

void LiveLine::show(double elapsed_s, const MemorySample& sample) {
  constexpr double kInterval_s = 0.1;
  if (!is_terminal_ || (shown_ && elapsed_s - shown_at_s_ < kInterval_s)) return;
  shown_at_s_ = elapsed_s;
  shown_ = true;
  std::string text = fmt::format("{:>8.1f} s  used {}", elapsed_s, size_text(sample.used_bytes));
  if (sample.allocated_bytes != sample.used_bytes)
    text += fmt::format("  allocated {}", size_text(sample.allocated_bytes));
  if (sample.bound.limit_bytes != 0)
    text += fmt::format("  {:.1f} % of {} ({})", sample.bound.percent(),
                        size_text(sample.bound.limit_bytes), sample.bound.name);
  write_stderr(fmt::format("\r{}\x1b[K", text));
  std::fflush(stderr);
}

void LiveLine::clear() {
  if (!shown_) return;
  write_stderr("\r\x1b[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace oomrec::tools::processes
