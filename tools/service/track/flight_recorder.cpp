#include "tools/service/track/flight_recorder.h"

#include <cstdlib>
#include <exception>
#include <filesystem>

#include "common/system/files.h"
#include "tools/base/error.h"
#include "tools/base/output_file.h"
#include "tools/base/text.h"
#include "tools/bundles/store/stored_facts.h"
#include "tools/bundles/store/writing.h"

namespace oomrec::tools::service {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kBetweenBundles = std::chrono::seconds{30};
constexpr auto kMostLook = std::chrono::milliseconds{200};
constexpr const char* kTelemetryName = "telemetry.json";
constexpr const char* kManifestName = "manifest.json";

}  // namespace

FlightRecorder::FlightRecorder(FlightRecorderOptions options) : options_(std::move(options)) {}

void FlightRecorder::add(Json event) {
  events_.push_back(std::move(event));
  if (events_.size() > options_.buffer_events) events_.pop_front();
}

FlightRecorder::CaptureResult FlightRecorder::capture(const recording::Recording& recording,
                                                      const std::string& reason) {
  const auto now = Clock::now();
  if (last_ != Clock::time_point{} && now - last_ < kBetweenBundles) return {};
  last_ = now;
  bundle::Cause cause;
  cause.trigger = Trigger::request;
  cause.reason = reason;
  // A process in a critical state often ends right now, and its recording with it. Tracking must go
  // on, and report the events so far.
  try {
    // A copy: the process changes its session while we read.
    recording::Recording copy{recording.path()};
    if (copy.header().pid_namespace == system::pid_namespace())
      copy.enter_look_within(copy.header().pid, kMostLook);
    const bundles::WriteResult written = bundles::write_bundle(
        copy, cause, fs::absolute(options_.directory).lexically_normal().string(),
        {options_.max_dumps, std::uint64_t{options_.max_total_mb} << 20});
    if (written.bundle.empty()) return {{}, written.problem};
    ++captured_;
    add_telemetry(written.bundle.string());
    return {written.bundle.string(), {}};
  } catch (const std::exception& error) {
    return {{}, printable(error.what())};
  }
}

// Adds the tracked events to the bundle, which has the process' own recording already.
void FlightRecorder::add_telemetry(const std::string& bundle) const {
  Json events = Json::array();
  for (const Json& event : events_) events.push_back(event);
  Json updated = read_json(bundle, kManifestName);
  updated[facts::kFilesKey].push_back(kTelemetryName);
  replace_file(bundle, kTelemetryName, json_text(events) + "\n");
  replace_file(bundle, kManifestName, json_text(updated, 1) + "\n");
}

}  // namespace oomrec::tools::service
