#include "tools/service/track/tracker.h"

#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <cmath>

#include "common/system/files.h"
#include "tools/base/text.h"
#include "tools/formats/telemetry/recorded.h"

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
  static_cast<formats::RankTags&>(begun_) = rank;
  begun_.collector = "oomrec track";
  begun_.sampling_interval_ms = std::llround(interval_s * 1000);
  begun_.pid = observed.pid();
  begun_.host = host_name();
  begun_.device_id = observed.device_id();
}

bool Tracker::look() {
  const processes::Look before = look_;
  if (!observed_.look(look_)) {
    if (started_) see_end();
    return false;
  }
  if (!started_) {
    started_ = true;
    failures_ = observed_.failures();
    recorded_peak_ = observed_.recorded_peak();
    peak_bytes_ = look_.allocated_bytes;
    add("start", observed_.title());
    change_bytes_ = 0;
  } else {
    see_change(signed_of(look_.allocated_bytes) - signed_of(before.allocated_bytes));
    see_failures();
  }
  for (const TrackAlert& one : alerts_.look(look_, change_bytes_)) alert(one);
  if (parts_.watchdog)
    if (const std::string advice = parts_.watchdog->look(look_, observed_); !advice.empty())
      parts_.tell(advice);
  return true;
}

// What came after the last look: a program that is refused memory often ends at once.
void Tracker::see_end() {
  look_.realtime_ns = system::realtime_ns();
  change_bytes_ = 0;
  see_failures();
  const std::uint64_t peak = observed_.recorded_peak();
  if (peak <= std::max(recorded_peak_, peak_bytes_)) return;
  peak_bytes_ = peak;
  at_new_peak_ = true;
}

void Tracker::see_change(std::int64_t change) {
  change_bytes_ = change;
  if (change < 0) see_peak();
  if (look_.allocated_bytes > peak_bytes_) {
    peak_bytes_ = look_.allocated_bytes;
    at_new_peak_ = true;
  }
  add(change > 0 ? "allocation" : change < 0 ? "deallocation" : "sample");
}

// A peak is told once it is left.
void Tracker::see_peak() {
  if (!at_new_peak_) return;
  at_new_peak_ = false;
  add("peak", fmt::format("peak {}", size_text(peak_bytes_)));
}

void Tracker::see_failures() {
  const std::uint64_t failures = observed_.failures();
  if (failures <= failures_) return;
  const std::uint64_t refused = failures - failures_;
  failures_ = failures;
  refused_ += refused;
  const std::string text =
      fmt::format("memory was refused: {}", plural(refused, "allocation", "allocations"));
  add("error", text);
  parts_.tell(fmt::format("error: {}", text));
}

void Tracker::alert(const TrackAlert& alert) {
  ++alert_count_;
  add(alert.type(), alert.text);
  parts_.tell(fmt::format("{}: {}", alert.type(), alert.text));
  const recording::Recording* const recording = observed_.recording();
  if (alert.rule != TrackRule::critical || !parts_.recorder || recording == nullptr) return;
  const auto captured =
      parts_.recorder->capture(*recording, fmt::format("critical: {}", alert.text));
  if (!captured.bundle.empty()) parts_.tell(fmt::format("bundle: {}", printable(captured.bundle)));
  if (!captured.problem.empty()) parts_.tell(fmt::format("no bundle: {}", captured.problem));
}

void Tracker::stop(const std::string& why) {
  if (!started_) return;
  change_bytes_ = 0;
  see_peak();
  add("stop", why);
}

void Tracker::add(std::string_view type, std::optional<std::string> context) {
  formats::TelemetryEvent event = begun_;
  event.timestamp_ns = signed_of(look_.realtime_ns);
  event.event_type = type;
  event.context = std::move(context);
  event.allocated_bytes = signed_of(look_.allocated_bytes);
  event.reserved_bytes = signed_of(look_.reserved_bytes);
  event.change_bytes = change_bytes_;
  event.used_bytes = signed_of(look_.used_bytes);
  if (look_.inactive_bytes) event.inactive_bytes = signed_of(*look_.inactive_bytes);
  if (look_.total_bytes) event.total_bytes = signed_of(*look_.total_bytes);
  if (look_.bound.limit_bytes != 0) {
    event.metadata = {{"limit", look_.bound.name},
                      {"limit_bytes", look_.bound.limit_bytes},
                      {"limit_percent", look_.bound.percent()}};
  }
  formats::make_consistent(event);
  const Json record = formats::event_json(event);
  if (parts_.recorder) parts_.recorder->remember(record);
  if (parts_.file != nullptr) parts_.file->add(record);
  ++events_;
}

std::string Tracker::summary() const {
  std::string page =
      fmt::format("{}: {}, {}\n  now {}, peak {}\n", observed_.title(),
                  plural(events_, "event", "events"), plural(alert_count_, "alert", "alerts"),
                  size_text(look_.allocated_bytes), size_text(peak_bytes_));
  if (refused_ != 0)
    page +=
        fmt::format("  memory was refused: {}\n", plural(refused_, "allocation", "allocations"));
  if (parts_.recorder && parts_.recorder->captured() != 0)
    page += fmt::format("  {} written\n", plural(parts_.recorder->captured(), "bundle", "bundles"));
  return page;
}

}  // namespace oomrec::tools::service
