// The analysis as text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/findings/telemetry_analysis/analysis.h"
#include "tools/print/duration.h"

namespace oomrec::tools::findings {
namespace {

constexpr std::size_t kShownFunctions = 10;

std::string bytes_text(double bytes) {
  return (bytes < 0 ? "-" : "") +
         size_text(static_cast<std::uint64_t>(std::llround(std::fabs(bytes))));
}

std::string megabytes_text(double megabytes) { return bytes_text(megabytes * formats::kMegabyte); }

std::string line(std::string_view name, Severity severity, const std::string& what) {
  return fmt::format("    {:<18} {:<8}  {}\n", name, word_of(severity), what);
}

std::string text_of_sign(const LeakFinding& sign) {
  switch (sign.sign) {
    case LeakSign::rising:
      return fmt::format("{} of the steps go up", percent_text(sign.figure));
    case LeakSign::spikes:
      return fmt::format("the highest sample is {:.1f} standard deviations above the mean",
                         sign.figure);
    case LeakSign::not_freed:
      break;
  }
  return sign.figure > 0
             ? fmt::format("the last five samples are {:.1f} times the first five", sign.figure)
             : std::string{"the first five samples are 0"};
}

std::string text_of_gap(const GapFinding& gap) {
  switch (gap.sign) {
    case GapSign::transient_spike:
      return fmt::format("its peak is {:.1f} standard deviations above its mean", gap.figure);
    case GapSign::persistent_drift:
      return fmt::format("it grows linearly, R² {:.2f}", gap.figure);
    case GapSign::fragmentation_like:
      break;
  }
  return fmt::format("{} of the reserved memory is inactive", percent_text(gap.figure));
}

std::string patterns_text(const StreamFindings& found) {
  std::string page;
  if (const auto& spikes = found.spikes)
    page += line(
        "spikes", spikes->severity(),
        fmt::format("{} above {}, the highest {} at {:.1f} s",
                    plural(spikes->count, "sample", "samples"), bytes_text(spikes->above_bytes),
                    bytes_text(spikes->highest_bytes), spikes->highest_at_seconds));
  if (const auto& steps = found.steps)
    page += line(
        "steps", Steps::severity(),
        fmt::format("{} by more than 20 %, the largest {}",
                    plural(steps->count, "change", "changes"), bytes_text(steps->largest_bytes)));
  if (const auto& period = found.period)
    page += line("periodic", Period::severity(),
                 fmt::format("every {}, correlation {:.2f}", print::duration_text(period->seconds),
                             period->correlation));
  if (const auto& trend = found.trend)
    page += line("trend", trend->severity(),
                 fmt::format("{}/s, r {:.2f}, p {:.2g}", bytes_text(trend->bytes_per_second),
                             trend->r, trend->p));
  if (found.fragmentation.severity != Severity::none)
    page += line("fragmentation", found.fragmentation.severity,
                 fmt::format("{} of the reserved memory is not allocated, at most {}",
                             percent_text(found.fragmentation.mean_share),
                             percent_text(found.fragmentation.highest_share)));
  if (const auto& gap = found.gap) {
    page += line("hidden memory", Severity::low,
                 fmt::format("{} more than is reserved, at most {} ({} of the total)",
                             bytes_text(gap->mean_bytes), bytes_text(gap->highest_bytes),
                             percent_text(gap->highest_share)));
    for (const GapFinding& one : gap->findings)
      page += line(word_of(one.sign), one.severity, text_of_gap(one));
  }
  return page;
}

}  // namespace

std::string Analysis::stream_text(const Stream& stream, const StreamFindings& found) const {
  std::string page = fmt::format(
      "\n  {}: {} in {:.1f} s\n    mean {}, peak {}, {}{}{}\n", printable(stream.name()),
      plural(found.allocated.size(), "sample", "samples"), found.seconds(),
      bytes_text(found.mean_bytes), bytes_text(found.peak_bytes),
      found.growth_bytes() < 0 ? "" : "+", bytes_text(found.growth_bytes()),
      found.utilization ? fmt::format("; {} of the total used", percent_text(*found.utilization))
                        : "");
  std::string lines;
  if (parts_.leaks)
    for (const LeakFinding& sign : found.leak_signs)
      lines += line(word_of(sign.sign), sign.severity, text_of_sign(sign));
  if (parts_.optimize) lines += patterns_text(found);
  return page + (lines.empty() ? "    nothing notable\n" : lines);
}

std::string Analysis::leaks_text() const {
  std::string page = leak_.detected ? fmt::format("leak: {}, {} in {}\n", leak_.severity,
                                                  megabytes_text(leak_.increase_mb),
                                                  print::duration_text(leak_.window_seconds))
                                    : std::string{"no leak\n"};
  for (const LeakRow& row : input_.leaks)
    page += fmt::format("  {:>10}  {:<8}  {}\n", megabytes_text(row.detection.increase_mb),
                        row.detection.severity, clip(printable(row.name), kColumns - 24));
  return page;
}

std::string Analysis::functions_text() const {
  if (input_.calls.empty()) return {};
  std::vector<formats::FunctionCall> calls = input_.calls;
  std::stable_sort(calls.begin(), calls.end(),
                   [](const formats::FunctionCall& a, const formats::FunctionCall& b) {
                     return a.peak_mb > b.peak_mb;
                   });
  std::string page = "\nfunctions\n        peak        end   duration  function\n";
  for (std::size_t i = 0; i < std::min(kShownFunctions, calls.size()); ++i)
    page += fmt::format("  {:>10} {:>10} {:>10}  {}\n", megabytes_text(calls[i].peak_mb),
                        megabytes_text(calls[i].end_mb),
                        print::duration_text(calls[i].end_time - calls[i].start_time),
                        clip(printable(calls[i].name), kColumns - 38));
  if (calls.size() > kShownFunctions)
    page +=
        fmt::format("  and {}: --json\n", plural(calls.size() - kShownFunctions, "more", "more"));
  return page;
}

std::string Analysis::text() const {
  std::string page = fmt::format("{} ({})\n\n", printable(input_.path), input_.kind);
  if (parts_.leaks) page += leaks_text();
  if (!streams_.empty()) page += "\nseries\n";
  for (std::size_t i = 0; i < streams_.size(); ++i) page += stream_text(streams_[i], findings_[i]);
  if (oom_events_ != 0)
    page += fmt::format("\nmemory was refused: {}\n", plural(oom_events_, "event", "events"));
  if (first_rank_)
    page += fmt::format("\nrank {} grew first, {:.1f} s after the start\n", first_rank_->rank,
                        first_rank_->at_seconds);
  page += functions_text();
  if (parts_.optimize && !suggestions_.empty()) {
    page += "\nwhat to try\n";
    for (const std::string& text : suggestions_)
      page += fmt::format("  → {}\n", wrap(printable(text), kColumns - 4, 4));
  }
  return page;
}

}  // namespace oomrec::tools::findings
