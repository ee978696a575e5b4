#include "tools/views/monitor/usage_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/base/text.h"

namespace oomrec::tools::views {
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

}  // namespace oomrec::tools::views
