#include "tools/service/track/tracker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "common/system/files.h"
#include "tools/base/text.h"
#include "tools/formats/telemetry/event.h"
#include "tools/formats/telemetry/recorded.h"
#include "tools/formats/telemetry/records.h"
#include "tools/processes/observe/live_line.h"
#include "tools/processes/observe/ticker.h"

namespace oomrec::tools::service {
namespace {

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? printable(name) : "unknown";
}

std::int64_t signed_of(std::uint64_t bytes) { return static_cast<std::int64_t>(bytes); }

}  // namespace

Tracker::Tracker(processes::Observed& observed, const Thresholds& thresholds,
                 const formats::RankTags& rank, double interval_s, TrackerParts parts)
    : observed_(observed), alerts_(thresholds), parts_(std::move(parts)) {
  static_cast<formats::RankTags&>(common_fields_) = rank;
  common_fields_.collector = "oomrec track";
  common_fields_.sampling_interval_ms = std::llround(interval_s * 1000);
  common_fields_.pid = observed.pid();
  common_fields_.host = host_name();
  common_fields_.device_id = observed.device_id();
}

bool Tracker::sample() {
  const processes::MemorySample before = last_;
  if (!observed_.sample(last_)) {
    if (started_) record_end();
    return false;
  }
  if (!started_) {
    started_ = true;
    failures_ = observed_.failures();
    recorded_peak_ = observed_.recorded_peak();
    peak_bytes_ = last_.allocated_bytes;
    add("start", observed_.title());
    change_bytes_ = 0;
  } else {
    record_change(signed_of(last_.allocated_bytes) - signed_of(before.allocated_bytes));
    record_failures();
  }
  for (const TrackAlert& one : alerts_.check(last_, change_bytes_)) alert(one);
  if (parts_.watchdog)
    if (const std::string advice = parts_.watchdog->check(last_, observed_); !advice.empty())
      parts_.report(advice);
  return true;
}

// Records what happened after the last sample: a program often ends right after a failed request.
void Tracker::record_end() {
  last_.realtime_ns = system::realtime_ns();
  change_bytes_ = 0;
  record_failures();
  const std::uint64_t peak = observed_.recorded_peak();
  if (peak <= std::max(recorded_peak_, peak_bytes_)) return;
  peak_bytes_ = peak;
  at_new_peak_ = true;
}

void Tracker::record_change(std::int64_t change) {
  change_bytes_ = change;
  if (change < 0) record_peak();
  if (last_.allocated_bytes > peak_bytes_) {
    peak_bytes_ = last_.allocated_bytes;
    at_new_peak_ = true;
  }
  add(change > 0 ? "allocation" : change < 0 ? "deallocation" : "sample");
}

// Records a peak once memory has fallen below it.
void Tracker::record_peak() {
  if (!at_new_peak_) return;
  at_new_peak_ = false;
  add("peak", fmt::format("peak {}", size_text(peak_bytes_)));
}

void Tracker::record_failures() {
  const std::uint64_t failures = observed_.failures();
  if (failures <= failures_) return;
  const std::uint64_t refused = failures - failures_;
  failures_ = failures;
  refused_ += refused;
  const std::string text =
      fmt::format("memory was refused: {}", plural(refused, "allocation", "allocations"));
  add("error", text);
  parts_.report(fmt::format("error: {}", text));
}

void Tracker::alert(const TrackAlert& alert) {
  ++alert_count_;
  add(alert.type(), alert.text);
  parts_.report(fmt::format("{}: {}", alert.type(), alert.text));
  const recording::Recording* const recording = observed_.recording();
  if (alert.rule != TrackRule::critical || !parts_.recorder || recording == nullptr) return;
  const auto captured =
      parts_.recorder->capture(*recording, fmt::format("critical: {}", alert.text));
  if (!captured.bundle.empty())
    parts_.report(fmt::format("bundle: {}", printable(captured.bundle)));
  if (!captured.problem.empty()) parts_.report(fmt::format("no bundle: {}", captured.problem));
}

void Tracker::stop(const std::string& why) {
  if (!started_) return;
  change_bytes_ = 0;
  record_peak();
  add("stop", why);
}

void Tracker::add(std::string_view type, std::optional<std::string> context) {
  formats::TelemetryEvent event = common_fields_;
  event.timestamp_ns = signed_of(last_.realtime_ns);
  event.event_type = type;
  event.context = std::move(context);
  event.allocated_bytes = signed_of(last_.allocated_bytes);
  event.reserved_bytes = signed_of(last_.reserved_bytes);
  event.change_bytes = change_bytes_;
  event.used_bytes = signed_of(last_.used_bytes);
  if (last_.inactive_bytes) event.inactive_bytes = signed_of(*last_.inactive_bytes);
  if (last_.total_bytes) event.total_bytes = signed_of(*last_.total_bytes);
  if (last_.bound.limit_bytes != 0) {
    event.metadata = {{"limit", last_.bound.name},
                      {"limit_bytes", last_.bound.limit_bytes},
                      {"limit_percent", last_.bound.percent()}};
  }
  formats::make_consistent(event);
  const Json record = formats::event_json(event);
  if (parts_.recorder) parts_.recorder->add(record);
  if (parts_.file != nullptr) parts_.file->add(record);
  ++events_;
}

std::string Tracker::summary() const {
  std::string page =
      fmt::format("{}: {}, {}\n  now {}, peak {}\n", observed_.title(),
                  plural(events_, "event", "events"), plural(alert_count_, "alert", "alerts"),
                  size_text(last_.allocated_bytes), size_text(peak_bytes_));
  if (refused_ != 0)
    page +=
        fmt::format("  memory was refused: {}\n", plural(refused_, "allocation", "allocations"));
  if (parts_.recorder && parts_.recorder->captured() != 0)
    page += fmt::format("  {} written\n", plural(parts_.recorder->captured(), "bundle", "bundles"));
  return page;
}

void track(processes::Observed& observed, const TrackingOptions& options) {
  std::optional<formats::RecordFile> file;
  if (options.format) file.emplace(options.output, *options.format, formats::event_columns());
  std::FILE* const page = file && file->is_stdout() ? stderr : stdout;
  processes::LiveLine line;
  const auto report = [&](const std::string& text) {
    line.clear();
    fmt::print(page, "{} {}\n", time_text(system::realtime_ns()), text);
    std::fflush(page);
  };
  TrackerParts parts{file ? &*file : nullptr, {}, {}, report};
  if (options.recorder) parts.recorder.emplace(*options.recorder);
  if (options.watchdog) parts.watchdog.emplace();
  Tracker tracker{observed, options.thresholds, options.rank, options.interval_s, std::move(parts)};

  processes::Ticker ticker{options.interval_s, options.duration_s, observed.pid()};
  bool is_running = false;
  do {
    is_running = tracker.sample();
    if (is_running) line.show(ticker.elapsed_s(), tracker.last());
  } while (is_running && ticker.next());
  line.clear();
  const std::string ending = is_running ? "" : fmt::format("it {}", observed.ending());
  tracker.stop(!is_running               ? ending
               : ticker.stop_requested() ? "stopped by a signal"
                                         : "the duration has elapsed");
  fmt::print(page, "{}{}", tracker.summary(), is_running ? "" : fmt::format("  {}\n", ending));
  if (file && !file->is_stdout())
    fmt::print(page, "  {} in {}\n", plural(file->records(), "event", "events"),
               printable(options.output));
}

}  // namespace oomrec::tools::service
