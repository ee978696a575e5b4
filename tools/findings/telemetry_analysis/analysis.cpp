#include "tools/findings/telemetry_analysis/analysis.h"

#include <algorithm>
#include <cmath>

#include "tools/base/text.h"

namespace oomrec::tools::findings {
namespace {

Severity worst_of(const std::vector<LeakFinding>& signs) {
  Severity worst = Severity::none;
  for (const LeakFinding& sign : signs) worst = std::max(worst, sign.severity);
  return worst;
}

formats::LeakDetection detection_of(const StreamFindings& found) {
  return {found.leaks(),
          word_of(worst_of(found.leak_signs)),
          found.growth_bytes() / formats::kMegabyte,
          found.seconds(),
          {}};
}

}  // namespace

Analysis::Analysis(AnalyzeInput input, AnalyzeParts parts)
    : input_(std::move(input)), parts_(parts) {
  if (!input_.events.empty()) begin_ns_ = input_.events.front().timestamp_ns;
  streams_ = streams_of(input_.events);
  for (const Stream& stream : streams_) {
    findings_.push_back(findings_of(stream, begin_ns_));
    oom_events_ += stream.oom_events;
  }
  first_rank_ = first_rank_of(streams_, findings_);
  find_leaks();
  find_suggestions();
}

// Takes the result of the recording's stacks; without one, the worst stream, or the worst function.
void Analysis::find_leaks() {
  if (input_.detected) {
    leak_ = *input_.detected;
    return;
  }
  Severity worst = Severity::none;
  for (const StreamFindings& found : findings_) {
    if (worst_of(found.leak_signs) <= worst) continue;
    worst = worst_of(found.leak_signs);
    leak_ = detection_of(found);
  }
  if (worst != Severity::none)
    leak_.suggestions.push_back(
        "Samples show that memory grows, but not where: record the program (oomrec run), then run "
        "`oomrec leaks`.");
  if (!input_.leaks.empty() && !leak_.detected) leak_ = input_.leaks.front().detection;
}

void Analysis::suggest(std::string text) {
  if (std::ranges::find(suggestions_, text) == suggestions_.end())
    suggestions_.push_back(std::move(text));
}

// Most important first.
void Analysis::find_suggestions() {
  for (const std::string& text : leak_.suggestions) suggest(text);
  for (const std::string& text : input_.advice) suggest(text);
  if (oom_events_ != 0)
    suggest("Memory was refused: `oomrec show` on the process's bundle shows who asked, and why.");
  for (const StreamFindings& found : findings_) {
    if (found.utilization && *found.utilization >= 0.85)
      suggest(
          "More than 85 % was in use: use a smaller batch, or raise the limit, before memory is "
          "refused.");
    if (found.fragmentation.severity != Severity::none)
      suggest(
          "Much memory is reserved but not allocated: allocate equal sizes together, free caches "
          "between phases, and for PyTorch try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.");
    if (found.spikes)
      suggest(
          "Memory spikes: split the work at the spikes (micro-batches, streaming) to lower the "
          "peak, which is what must fit.");
    if (found.steps)
      suggest(
          "Memory repeatedly jumps by more than 20 %: reuse buffers instead of freeing and "
          "allocating them.");
    if (found.trend && found.trend->severity() == Severity::high)
      suggest("Memory grows by more than 1 MiB a second: if that continues, it will be refused.");
    if (!found.gap) continue;
    for (const GapFinding& gap : found.gap->findings) {
      if (gap.sign == GapSign::persistent_drift)
        suggest(
            "Device memory grows outside of the allocator: contexts, workspaces of libraries, "
            "other "
            "processes. `oomrec show` lists the processes on the device.");
      if (gap.sign == GapSign::transient_spike)
        suggest(
            "Device memory was briefly used outside of the allocator, as workspaces of libraries "
            "do: leave that much free.");
    }
  }
}

Json Analysis::stream_json(const Stream& stream, const StreamFindings& found) const {
  Json row{{"host", stream.host},
           {"pid", stream.pid},
           {"device_id", stream.device_id},
           {"rank", stream.rank},
           {"samples", found.allocated.size()},
           {"seconds", found.seconds()},
           {"mean_bytes", std::llround(found.mean_bytes)},
           {"peak_bytes", std::llround(found.peak_bytes)},
           {"growth_bytes", std::llround(found.growth_bytes())},
           {"utilization_ratio", found.utilization},
           {"oom_events", stream.oom_events}};
  Json signs = Json::array();
  for (const LeakFinding& sign : found.leak_signs)
    signs.push_back({{"sign", word_of(sign.sign)},
                     {"severity", word_of(sign.severity)},
                     {"figure", sign.figure}});
  row["leak_detection"] =
      parts_.leaks ? formats::leak_detection_json(detection_of(found)) : Json(nullptr);
  row["leak_signs"] = parts_.leaks ? std::move(signs) : Json(nullptr);

  Json patterns = Json::array();
  const auto add = [&](std::string_view kind, Severity severity, const Json& figures) {
    patterns.push_back({{"kind", kind}, {"severity", word_of(severity)}, {"figures", figures}});
  };
  if (found.spikes)
    add("spikes", found.spikes->severity(),
        {{"count", found.spikes->count},
         {"above_bytes", std::llround(found.spikes->above_bytes)},
         {"highest_bytes", std::llround(found.spikes->highest_bytes)},
         {"highest_at_seconds", found.spikes->highest_at_seconds}});
  if (found.steps)
    add("steps", Steps::severity(),
        {{"count", found.steps->count},
         {"largest_bytes", std::llround(found.steps->largest_bytes)}});
  if (found.period)
    add("periodic", Period::severity(),
        {{"period_seconds", found.period->seconds}, {"correlation", found.period->correlation}});
  if (found.trend)
    add("trend", found.trend->severity(),
        {{"bytes_per_second", found.trend->bytes_per_second},
         {"r", found.trend->r},
         {"p", found.trend->p}});
  const auto if_wanted = [&](Json value) {
    return parts_.optimize ? std::move(value) : Json(nullptr);
  };
  row["patterns"] = if_wanted(std::move(patterns));
  row["fragmentation"] = if_wanted({{"mean_share", found.fragmentation.mean_share},
                                    {"highest_share", found.fragmentation.highest_share},
                                    {"severity", word_of(found.fragmentation.severity)}});
  Json gap = nullptr;
  if (found.gap) {
    Json signs_of_gap = Json::array();
    for (const GapFinding& one : found.gap->findings)
      signs_of_gap.push_back({{"sign", word_of(one.sign)},
                              {"severity", word_of(one.severity)},
                              {"figure", one.figure}});
    gap = {{"mean_bytes", std::llround(found.gap->mean_bytes)},
           {"highest_bytes", std::llround(found.gap->highest_bytes)},
           {"highest_share", found.gap->highest_share},
           {"bytes_per_second", found.gap->bytes_per_second},
           {"findings", std::move(signs_of_gap)}};
  }
  row["hidden_memory"] = if_wanted(std::move(gap));
  return row;
}

Json Analysis::json() const {
  Json streams = Json::array();
  for (std::size_t i = 0; i < streams_.size(); ++i)
    streams.push_back(stream_json(streams_[i], findings_[i]));
  Json calls = Json::array();
  for (const formats::FunctionCall& call : input_.calls) calls.push_back(formats::call_json(call));
  Json leaks = Json::array();
  for (const LeakRow& row : input_.leaks) {
    Json leak{{"name", row.name}};
    leak.update(formats::leak_detection_json(row.detection));
    leaks.push_back(std::move(leak));
  }
  const bool dated = !input_.events.empty();
  const auto time = [](const formats::TelemetryEvent& event) {
    return Json(time_text(static_cast<std::uint64_t>(event.timestamp_ns)));
  };
  return {{"schema_version", 1},
          {"source", {{"path", input_.path}, {"kind", input_.kind}}},
          {"began_utc", dated ? time(input_.events.front()) : Json(nullptr)},
          {"ended_utc", dated ? time(input_.events.back()) : Json(nullptr)},
          {"leak_detection", parts_.leaks ? formats::leak_detection_json(leak_) : Json(nullptr)},
          {"function_leaks", parts_.leaks ? std::move(leaks) : Json(nullptr)},
          {"function_calls", std::move(calls)},
          {"streams", std::move(streams)},
          {"oom_events", oom_events_},
          {"first_rank",
           first_rank_ ? Json{{"rank", first_rank_->rank}, {"at_seconds", first_rank_->at_seconds}}
                       : Json(nullptr)},
          {"suggestions", parts_.optimize ? Json(suggestions_) : Json(nullptr)}};
}

}  // namespace oomrec::tools::findings
