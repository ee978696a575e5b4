#include "tools/findings/telemetry_analysis/functions.h"

#include <algorithm>
#include <map>

#include "tools/recording/analysis/statistics.h"
#include "tools/recording/reading/checkpoints.h"
#include "tools/recording/stack_text/stack_text.h"

namespace oomrec::tools::findings {

double FunctionCurve::peak() const {
  return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

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
  std::stable_sort(
      all.curves.begin(), all.curves.end(),
      [](const FunctionCurve& a, const FunctionCurve& b) { return a.peak() > b.peak(); });
  return all;
}

std::vector<formats::FunctionCall> calls_of(const FunctionCurves& curves, std::size_t most) {
  std::vector<formats::FunctionCall> calls;
  for (const FunctionCurve& curve : curves.curves) {
    if (calls.size() == most || curve.peak() <= 0) break;
    const auto held = [](double bytes) { return bytes > 0; };
    const auto first = static_cast<std::size_t>(
        std::find_if(curve.bytes.begin(), curve.bytes.end(), held) - curve.bytes.begin());
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
  std::stable_sort(leaks.begin(), leaks.end(), [](const NamedLeak& a, const NamedLeak& b) {
    return a.leak.total_bytes > b.leak.total_bytes;
  });
  return leaks;
}

}  // namespace oomrec::tools::findings
