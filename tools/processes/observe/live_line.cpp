#include "tools/processes/observe/live_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/base/terminal.h"
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

namespace {

std::string bytes_text(double bytes) { return size_text(static_cast<std::uint64_t>(bytes)); }

}  // namespace

void UsageSummary::add(const processes::MemorySample& sample) {
  const auto used = static_cast<double>(sample.used_bytes);
  if (samples_ == 0) first_ = lowest_ = highest_ = used;
  lowest_ = std::min(lowest_, used);
  highest_ = std::max(highest_, used);
  last_ = used;
  sum_ += used;
  total_ = sample.total_bytes;
  ++samples_;
}

std::string UsageSummary::text(const std::string& title, double seconds) const {
  std::string page =
      fmt::format("{}: {} in {:.1f} s\n", title, plural(samples_, "sample", "samples"), seconds);
  if (samples_ == 0) return page;
  const double change = last_ - first_;
  page += line("lowest", lowest_) + line("mean", sum_ / static_cast<double>(samples_)) +
          line("highest", highest_) + line("last", last_);
  return page + fmt::format("  {:<8} {:>10}\n", "change",
                            (change < 0 ? "-" : "+") + bytes_text(std::abs(change)));
}

std::string UsageSummary::line(std::string_view name, double bytes) const {
  const std::string share =
      total_ && *total_ != 0
          ? fmt::format("  {} of {}", percent_text(bytes / static_cast<double>(*total_)),
                        size_text(*total_))
          : "";
  return fmt::format("  {:<8} {:>10}{}\n", name, bytes_text(bytes), share);
}

}  // namespace oomrec::tools::processes
