#include "tools/service/track/flight_recorder.h"

#include <cstdlib>
#include <exception>
#include <filesystem>

#include "tools/base/error.h"
#include "tools/base/output_file.h"
#include "tools/base/text.h"
#include "tools/bundles/store/writing.h"

namespace oomrec::tools::service {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kBetweenBundles = std::chrono::seconds{30};
constexpr const char* kTelemetryName = "telemetry.json";

// A file of a bundle is renamed to its name when it is whole.
void put(const fs::path& file, const std::string& text) {
  const fs::path partial = file.parent_path() / ("." + file.filename().string() + ".partial");
  write_output(partial, text, IfThere::overwrite);
  fs::rename(partial, file);
}

}  // namespace

FlightRecorder::FlightRecorder(FlightRecorderOptions options) : options_(std::move(options)) {}

void FlightRecorder::remember(Json event) {
  events_.push_back(std::move(event));
  if (events_.size() > options_.buffer_events) events_.pop_front();
}

FlightRecorder::Captured FlightRecorder::capture(const recording::Recording& recording,
                                                 const std::string& reason) {
  const auto now = Clock::now();
  if (last_ != Clock::time_point{} && now - last_ < kBetweenBundles) return {};
  last_ = now;
  // Where write_bundle() reads how many bundles stay.
  setenv("OOMREC_MAX_DUMPS", std::to_string(options_.max_dumps).c_str(), 1);
  setenv("OOMREC_MAX_TOTAL_MB", std::to_string(options_.max_total_mb).c_str(), 1);
  bundle::Cause cause;
  cause.trigger = Trigger::request;
  cause.reason = reason;
  // What is critical often ends in the same moment, and its recording with it; what is tracked so
  // far is to be told all the same.
  try {
    // A copy: the session goes on while it is read.
    const recording::Recording copy{recording.path()};
    const bundles::Written written = bundles::write_bundle(
        copy, cause, fs::absolute(options_.directory).lexically_normal().string());
    if (written.bundle.empty()) return {{}, written.problem};
    ++captured_;
    add_telemetry(written.bundle.string());
    return {written.bundle.string(), {}};
  } catch (const std::exception& error) {
    return {{}, printable(error.what())};
  }
}

// What was seen before, beside what the process recorded itself.
void FlightRecorder::add_telemetry(const std::string& bundle) const {
  Json events = Json::array();
  for (const Json& event : events_) events.push_back(event);
  const fs::path manifest = fs::path{bundle} / "manifest.json";
  Json told = read_json(manifest);
  told["files"].push_back(kTelemetryName);
  put(fs::path{bundle} / kTelemetryName, json_text(events) + "\n");
  put(manifest, json_text(told, 1) + "\n");
}

}  // namespace oomrec::tools::service
