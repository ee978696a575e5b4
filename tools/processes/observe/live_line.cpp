#include "tools/processes/observe/live_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "tools/base/text.h"

namespace oomrec::tools::processes {

LiveLine::LiveLine() : wanted_(isatty(STDERR_FILENO) == 1) {}

void LiveLine::show(double elapsed_s, const Look& look) {
  constexpr double kLeast_s = 0.1;
  if (!wanted_ || (shown_ && elapsed_s - shown_at_s_ < kLeast_s)) return;
  shown_at_s_ = elapsed_s;
  shown_ = true;
  std::string text = fmt::format("{:>8.1f} s  used {}", elapsed_s, size_text(look.used_bytes));
  if (look.allocated_bytes != look.used_bytes)
    text += fmt::format("  allocated {}", size_text(look.allocated_bytes));
  if (look.bound.limit_bytes != 0)
    text += fmt::format("  {:.1f} % of {} ({})", look.bound.percent(),
                        size_text(look.bound.limit_bytes), look.bound.name);
  fmt::print(stderr, "\r{}\x1b[K", text);
  std::fflush(stderr);
}

void LiveLine::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace oomrec::tools::processes
