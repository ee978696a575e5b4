// Follows what is observed, look by look: events for a file, alerts for its user, bundles where
// they were asked for.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tools/formats/telemetry/event.h"
#include "tools/formats/telemetry/record_file.h"
#include "tools/processes/observe/observed.h"
#include "tools/service/track/alerts.h"
#include "tools/service/track/flight_recorder.h"
#include "tools/service/track/watchdog.h"

namespace oomrec::tools::service {

struct TrackerParts {
  formats::RecordFile* file = nullptr;  // nullptr: events are kept nowhere
  std::optional<FlightRecorder> recorder;
  std::optional<Watchdog> watchdog;
  std::function<void(const std::string&)> tell;  // a line for the user
};

class Tracker {
 public:
  Tracker(processes::Observed& observed, const Thresholds& thresholds,
          const formats::RankTags& rank, double interval_s, TrackerParts parts);

  // The first look is the event "start". False: what is observed has ended.
  bool look();
  void stop(const std::string& why);  // the event "stop"

  const processes::Look& last() const { return look_; }
  std::string summary() const;

 private:
  void add(std::string_view type, std::optional<std::string> context = {});
  void see_end();
  void see_change(std::int64_t change);
  void see_peak();
  void see_failures();
  void alert(const TrackAlert& alert);

  processes::Observed& observed_;
  TrackAlerts alerts_;
  TrackerParts parts_;
  formats::TelemetryEvent begun_;  // what is the same in all events
  processes::Look look_;
  bool started_ = false;
  std::int64_t change_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
  bool at_new_peak_ = false;         // it has not been told yet
  std::uint64_t recorded_peak_ = 0;  // of the time before the first look
  std::uint64_t failures_ = 0, refused_ = 0;
  std::size_t events_ = 0, alert_count_ = 0;
};

}  // namespace oomrec::tools::service
