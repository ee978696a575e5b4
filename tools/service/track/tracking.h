// Runs `oomrec track`: samples until the process ends, the duration has elapsed or a signal stops
// it.
#pragma once

#include <optional>
#include <string>

#include "tools/formats/telemetry/rank.h"
#include "tools/processes/observe/observed.h"
#include "tools/service/track/alerts.h"
#include "tools/service/track/flight_recorder.h"

namespace oomrec::tools::service {

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
