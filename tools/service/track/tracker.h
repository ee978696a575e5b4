// Tracks a process or the machine, sample by sample: writes events to a file, alerts the user and,
// if requested, writes bundles.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tools/formats/telemetry/event.h"
#include "tools/formats/telemetry/rank.h"
#include "tools/formats/telemetry/records.h"
#include "tools/processes/observe/observed.h"
#include "tools/service/track/alerts.h"
#include "tools/service/track/flight_recorder.h"

namespace oomrec::tools::service {

struct TrackerParts {
  formats::RecordFile* file = nullptr;  // null: events are not written
  std::optional<FlightRecorder> recorder;
  std::optional<Watchdog> watchdog;
  std::function<void(const std::string&)> report;  // prints a line for the user
};

class Tracker {
 public:
  Tracker(processes::Observed& observed, const Thresholds& thresholds,
          const formats::RankTags& rank, double interval_s, TrackerParts parts);

  // Takes a sample. The first one is the event "start". False: the observed process has ended.
  bool sample();
  void stop(const std::string& why);  // the event "stop"

  const processes::MemorySample& last() const { return last_; }
  std::string summary() const;

 private:
  void add(std::string_view type, std::optional<std::string> context = {});
  void record_end();
  void record_change(std::int64_t change);
  void record_peak();
  void record_failures();
  void alert(const TrackAlert& alert);

  processes::Observed& observed_;
  TrackAlerts alerts_;
  TrackerParts parts_;
  formats::TelemetryEvent common_fields_;  // the same in all events
  processes::MemorySample last_;
  bool started_ = false;
  std::int64_t change_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
  bool at_new_peak_ = false;         // which has no event yet
  std::uint64_t recorded_peak_ = 0;  // before the first sample
  std::uint64_t failures_ = 0, refused_ = 0;
  std::size_t events_ = 0, alert_count_ = 0;
};

// Runs `oomrec track`: samples until the process ends, the duration has elapsed or a signal stops
// it.
struct TrackingOptions {
  Thresholds thresholds;
  formats::RankTags rank;  // for the events
  double interval_s = 0.1;
  std::optional<double> duration_s;               // empty: until the process ends
  std::string output;                             // the file for the events; "-": stdout
  std::optional<std::string> format;              // of the events; empty: they are not written
  std::optional<FlightRecorderOptions> recorder;  // empty: no bundles
  bool watchdog = false;
};

// Prints a live line, alerts and a summary to stdout, or to stderr if the events go to stdout.
// Throws Error.
void track(processes::Observed& observed, const TrackingOptions& options);

}  // namespace oomrec::tools::service
