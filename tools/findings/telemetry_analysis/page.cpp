// The analysis as text.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/findings/telemetry_analysis/analysis.h"

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
                 fmt::format("every {}, correlation {:.2f}", duration_text(period->seconds),
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
                                                  duration_text(leak_.window_seconds))
                                    : std::string{"no leak\n"};
  for (const LeakRow& row : input_.leaks)
    page += fmt::format("  {:>10}  {:<8}  {}\n", megabytes_text(row.detection.increase_mb),
                        row.detection.severity, clip(printable(row.name), kColumns - 24));
  return page;
}

std::string Analysis::functions_text() const {
  if (input_.calls.empty()) return {};
  std::vector<formats::FunctionCall> calls = input_.calls;
  std::ranges::stable_sort(calls, std::ranges::greater{}, &formats::FunctionCall::peak_mb);
  std::string page = "\nfunctions\n        peak        end   duration  function\n";
  for (std::size_t i = 0; i < std::min(kShownFunctions, calls.size()); ++i)
    page += fmt::format("  {:>10} {:>10} {:>10}  {}\n", megabytes_text(calls[i].peak_mb),
                        megabytes_text(calls[i].end_mb),
                        duration_text(calls[i].end_time - calls[i].start_time),
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

namespace {

constexpr std::size_t kMostRows = 20;      // of the heat map and of the bars
constexpr std::size_t kMostPoints = 2000;  // of a curve: more than a page has columns

// Evenly thinned indexes of `count` points, always with the last one.
std::vector<std::size_t> thinned_indexes(std::size_t count) {
  std::vector<std::size_t> indexes;
  const std::size_t every = std::max<std::size_t>(1, (count + kMostPoints - 1) / kMostPoints);
  for (std::size_t i = 0; i < count; i += every) indexes.push_back(i);
  if (!indexes.empty() && indexes.back() != count - 1) indexes.push_back(count - 1);
  return indexes;
}

Json timeline_json(const Stream& stream, const StreamFindings& found) {
  Json seconds = Json::array();
  Json allocated = Json::array();
  Json reserved = Json::array();
  Json used = Json::array();
  bool has_reserved = false;
  for (const std::size_t i : thinned_indexes(found.held.size())) {
    const HeldSample& sample = found.held[i];
    seconds.push_back(sample.seconds);
    allocated.push_back(sample.allocated);
    reserved.push_back(sample.reserved);
    used.push_back(sample.used);
    has_reserved = has_reserved || sample.reserved != sample.allocated;
  }
  Json curves = Json::array({{{"name", "allocated"}, {"bytes", std::move(allocated)}}});
  if (has_reserved) curves.push_back({{"name", "reserved"}, {"bytes", std::move(reserved)}});
  curves.push_back(
      {{"name", stream.device_id < 0 ? "resident" : "device used"}, {"bytes", std::move(used)}});
  return {{"name", printable(stream.name())},
          {"seconds", std::move(seconds)},
          {"curves", std::move(curves)}};
}

// A recording's functions over its checkpoints.
Json heat_rows(const FunctionCurves& curves) {
  Json rows = Json::array();
  for (const FunctionCurve& curve : curves.curves) {
    if (rows.size() == kMostRows || curve.peak() <= 0) break;
    Json seconds = Json::array();
    for (const double time : curves.times) seconds.push_back(time - curves.times.front());
    rows.push_back(
        {{"name", printable(curve.name)}, {"seconds", std::move(seconds)}, {"bytes", curve.bytes}});
  }
  return rows;
}

// Telemetry's processes or ranks over their samples.
Json heat_rows(const std::vector<Stream>& streams, const std::vector<StreamFindings>& findings) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < std::min(kMostRows, streams.size()); ++i) {
    Json seconds = Json::array();
    Json bytes = Json::array();
    for (const std::size_t at : thinned_indexes(findings[i].allocated.size())) {
      seconds.push_back(findings[i].allocated.seconds[at]);
      bytes.push_back(findings[i].allocated.values[at]);
    }
    rows.push_back({{"name", printable(streams[i].name())},
                    {"seconds", std::move(seconds)},
                    {"bytes", std::move(bytes)}});
  }
  return rows;
}

}  // namespace

Json Analysis::drawing() const {
  Json timelines = Json::array();
  for (std::size_t i = 0; i < streams_.size(); ++i)
    timelines.push_back(timeline_json(streams_[i], findings_[i]));
  std::vector<formats::FunctionCall> calls = input_.calls;
  std::ranges::stable_sort(calls, std::ranges::greater{}, &formats::FunctionCall::peak_mb);
  Json functions = Json::array();
  for (std::size_t i = 0; i < std::min(kMostRows, calls.size()); ++i)
    functions.push_back({{"name", printable(calls[i].name)},
                         {"peak_bytes", calls[i].peak_mb * formats::kMegabyte},
                         {"end_bytes", calls[i].end_mb * formats::kMegabyte}});
  return {{"title", printable(input_.path)},
          {"timelines", std::move(timelines)},
          {"heat", input_.curves.curves.empty() ? heat_rows(streams_, findings_)
                                                : heat_rows(input_.curves)},
          {"functions", std::move(functions)}};
}

}  // namespace oomrec::tools::findings
