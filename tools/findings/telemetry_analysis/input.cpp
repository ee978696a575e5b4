#include "tools/findings/telemetry_analysis/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/open.h"
#include "tools/bundles/ranks/merged.h"
#include "tools/bundles/store/source.h"
#include "tools/findings/advice/advice.h"
#include "tools/findings/leaks/detect.h"
#include "tools/findings/leaks/severity.h"
#include "tools/formats/telemetry/load.h"
#include "tools/formats/telemetry/recorded.h"
#include "tools/recording/analysis/statistics.h"
#include "tools/recording/reading/checkpoints.h"
#include "tools/recording/reading/image.h"
#include "tools/recording/stack_text/stack_text.h"

namespace oomrec::tools::findings {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFunctions = 100;

// A file that is neither a recording nor a PyTorch snapshot.
bool is_telemetry(const std::string& named) {
  std::error_code error;
  return fs::is_regular_file(named, error) && !bundles::is_snapshot(ForeignPath::named(named)) &&
         !recording::is_session_file(named);
}

std::string_view severity_of_bytes(double bytes) {
  return bytes > 1024 * formats::kMegabyte  ? "critical"
         : bytes > 100 * formats::kMegabyte ? "high"
         : bytes > 10 * formats::kMegabyte  ? "medium"
                                            : "low";
}

AnalyzeInput read_telemetry(const std::string& file) {
  formats::LoadedTelemetry loaded = formats::load_telemetry(file);
  for (const std::string& note : loaded.notes) remark(fmt::format("{}: {}", file, note));
  AnalyzeInput input;
  input.path = fs::absolute(file).lexically_normal().string();
  input.kind = std::move(loaded.kind);
  input.events = std::move(loaded.events);
  input.calls = std::move(loaded.calls);
  for (const NamedLeak& leak : function_leaks_of(input.calls))
    input.leaks.push_back({leak.name,
                           {true,
                            word_of(leak.leak.severity),
                            leak.leak.total_bytes / formats::kMegabyte,
                            leak.window_seconds,
                            {"Check what " + leak.name + " keeps: lists, caches, closures."}}});
  return input;
}

// For a job, the events of each rank by the job's clock. Their sum would say little about any rank.
std::vector<formats::TelemetryEvent> events_of(const bundles::Source& source) {
  if (!source.is_job()) return formats::events_over_time(*source.recording);
  std::vector<formats::TelemetryEvent> all;
  bundles::for_each_rank(source, [&](const Json& row, const bundles::Source& rank) {
    const Json& shift = member(row, "shift_seconds");
    const auto shift_ns = std::llround((shift.is_number() ? shift.get<double>() : 0) * 1e9);
    for (formats::TelemetryEvent& event : formats::events_over_time(*rank.recording)) {
      // Times in a file may be anything.
      if (__builtin_add_overflow(event.timestamp_ns, shift_ns, &event.timestamp_ns)) continue;
      if (const auto number = number_of(row, "rank")) {
        event.rank = *number;
        event.world_size.reset();  // the job's, which the process need not know
      }
      all.push_back(std::move(event));
    }
  });
  // Without the ranks' bundles, only the sum is left.
  if (all.empty()) return formats::events_over_time(*source.recording);
  std::ranges::stable_sort(all, {}, &formats::TelemetryEvent::timestamp_ns);
  return all;
}

AnalyzeInput read_recording(const std::string& named) {
  const bundles::Source source = bundles::open_source(named, recording::CacheDirectory::of_user());
  const recording::Recording& recording = *source.recording;
  const recording::Locations& locations = *source.locations;
  recording::Stacks stacks{recording, *source.locations};
  AnalyzeInput input;
  input.path = source.bundle.empty() ? recording.path().string() : source.bundle.string();
  input.kind = "recording";
  input.events = events_of(source);
  input.curves = function_curves(recording, stacks, locations);
  input.calls = calls_of(input.curves, kMostFunctions);
  const Leaks leaks = leaks_of(recording, stacks, locations, until_of(source));
  for (const Leak& leak : leaks.leaks)
    input.leaks.push_back({recording::location_text(locations[leak.subject], locations),
                           {true,
                            severity_of_bytes(leak.growth.bytes),
                            leak.growth.bytes / formats::kMegabyte,
                            leak.growth.window_seconds,
                            {suggestion_of(leak, stacks, locations)}}});
  const auto reach = first_reached(leaks, recording, recording::timeline_of(recording));
  if (leaks.has_enough_checkpoints())
    input.detected = formats::LeakDetection{leaks.detected(), severity_of(leaks, reach),
                                            leaks.bytes() / formats::kMegabyte, leaks.seconds,
                                            suggestions_of(leaks, stacks, locations)};
  for (const Hint& hint : advice_of(advice_facts(source, leaks))) input.advice.push_back(hint.text);
  return input;
}

}  // namespace

AnalyzeInput analyze_input(const std::string& named) {
  return is_telemetry(named) ? read_telemetry(named) : read_recording(named);
}

double FunctionCurve::peak() const { return bytes.empty() ? 0 : *std::ranges::max_element(bytes); }

FunctionCurves function_curves(const recording::Recording& recording, recording::Stacks& stacks,
                               const recording::Locations& locations) {
  FunctionCurves all;
  const std::vector<recording::Checkpoint> checkpoints = recording::checkpoints_of(recording);
  std::map<std::uint32_t, recording::StackId> stack_of;  // by holder, of spaces that add up
  for (const recording::HolderFigures& holder : recording.holders())
    if (is_additive(holder.space)) stack_of[holder.entry] = stacks.of_node(holder.node);
  const std::vector<recording::LocationId> subjects = recording::subjects_of(stacks, locations);
  std::map<recording::LocationId, std::vector<double>> by_subject;
  for (std::size_t i = 0; i < checkpoints.size(); ++i) {
    all.times.push_back(static_cast<double>(recording.realtime_of(checkpoints[i].time_ns)) / 1e9);
    for (const recording::CheckpointRow& row : checkpoints[i].largest) {
      const auto stack = stack_of.find(row.holder);
      if (stack == stack_of.end()) continue;
      std::vector<double>& bytes = by_subject[subjects[stack->second]];
      bytes.resize(checkpoints.size());
      bytes[i] += static_cast<double>(row.live_bytes);
    }
  }
  for (auto& [subject, bytes] : by_subject)
    all.curves.push_back(
        {recording::location_text(locations[subject], locations), std::move(bytes)});
  std::ranges::stable_sort(all.curves, std::ranges::greater{}, &FunctionCurve::peak);
  return all;
}

std::vector<formats::FunctionCall> calls_of(const FunctionCurves& curves, std::size_t most) {
  std::vector<formats::FunctionCall> calls;
  for (const FunctionCurve& curve : curves.curves) {
    if (calls.size() == most || curve.peak() <= 0) break;
    const auto held = [](double bytes) { return bytes > 0; };
    const auto first =
        static_cast<std::size_t>(std::ranges::find_if(curve.bytes, held) - curve.bytes.begin());
    std::size_t last = curve.bytes.size() - 1;
    while (last > first && curve.bytes[last] <= 0) --last;
    calls.push_back({curve.name, curves.times[first], curves.times[last],
                     curve.bytes[first] / formats::kMegabyte,
                     curve.bytes[last] / formats::kMegabyte, curve.peak() / formats::kMegabyte});
  }
  return calls;
}

std::vector<NamedLeak> function_leaks_of(const std::vector<formats::FunctionCall>& calls) {
  struct Calls {
    std::vector<double> growth_bytes;
    double begin = 0, end = 0;
  };
  std::map<std::string, Calls> by_name;
  for (const formats::FunctionCall& call : calls) {
    Calls& same = by_name[call.name];
    same.begin =
        same.growth_bytes.empty() ? call.start_time : std::min(same.begin, call.start_time);
    same.end = std::max(same.end, call.end_time);
    same.growth_bytes.push_back((call.end_mb - call.start_mb) * formats::kMegabyte);
  }
  std::vector<NamedLeak> leaks;
  for (const auto& [name, same] : by_name)
    if (const auto leak = function_leak_of(same.growth_bytes))
      leaks.push_back({name, *leak, same.end - same.begin});
  std::ranges::stable_sort(leaks, [](const NamedLeak& a, const NamedLeak& b) {
    return a.leak.total_bytes > b.leak.total_bytes;
  });
  return leaks;
}

}  // namespace oomrec::tools::findings
