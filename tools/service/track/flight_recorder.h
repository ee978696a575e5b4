// Writes bundles of a tracked process from outside, with its latest events in telemetry.json.
#pragma once

#include <chrono>
#include <deque>
#include <string>

#include "tools/base/json.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::service {

struct FlightRecorderOptions {
  std::string directory = "oom_dumps";
  std::size_t buffer_events = 10'000;  // in a bundle
  unsigned max_dumps = 5;              // 0: no bound
  unsigned max_total_mb = 256;         // 0: no bound
};

class FlightRecorder {
 public:
  explicit FlightRecorder(FlightRecorderOptions options);

  // Keeps the latest `buffer_events` events.
  void add(Json event);

  struct CaptureResult {
    std::string bundle;   // empty: none was written, and `problem` says why
    std::string problem;  // empty, too: it is too soon after the last bundle
  };
  // Writes a bundle, at most one in 30 s. `reason`: a text for the bundle.
  CaptureResult capture(const recording::Recording& recording, const std::string& reason);

  std::size_t captured() const { return captured_; }

 private:
  void add_telemetry(const std::string& bundle) const;

  const FlightRecorderOptions options_;
  std::deque<Json> events_;
  std::chrono::steady_clock::time_point last_{};  // never: the epoch
  std::size_t captured_ = 0;
};

}  // namespace oomrec::tools::service
