#include "tools/findings/diagnose/diagnosis.h"

#include "tools/deaths/counters.h"
#include "tools/processes/launch/facts.h"
#include "tools/processes/observe/live_line.h"
#include "tools/processes/observe/ticker.h"
#include "tools/processes/system/system.h"

namespace oomrec::tools::findings {
namespace {

// {timestamps, allocated, reserved}, one value for each sample.
struct TimelineColumns {
  Json timestamps = Json::array(), allocated = Json::array(), reserved = Json::array();

  void add(const processes::MemorySample& sample) {
    timestamps.push_back(static_cast<double>(sample.realtime_ns) / 1e9);
    allocated.push_back(sample.allocated_bytes);
    reserved.push_back(sample.reserved_bytes);
  }
  Json json() const {
    return {{"timestamps", timestamps}, {"allocated", allocated}, {"reserved", reserved}};
  }
};

Json environment_json(const processes::Observed& observed) {
  const processes::SystemFacts system = processes::system_facts();
  Json environment{{"schema_version", 1}, {"oomrec_version", OOMREC_VERSION}};
  environment.update(
      processes::system_json(system, processes::python_facts(processes::PythonDetail::packages)));
  environment["devices"] = processes::gpus_json(system);
  Json limits = Json::array();
  for (const processes::SystemLimit& limit : processes::limits_in_force())
    limits.push_back({{"kind", limit.name}, {"bytes", limit.bytes}});
  environment["limits"] = std::move(limits);
  environment["observed"] = {{"title", observed.title()},
                             {"pid", observed.pid() > 0 ? Json(observed.pid()) : Json(nullptr)},
                             {"device_id", observed.device_id()},
                             {"recorded", observed.recording() != nullptr}};
  return environment;
}

Json summary_json(const RiskFigures& risk, const processes::Observed& observed) {
  return {{"backend", observed.device_id() < 0 ? "cpu" : "cuda"},
          {"allocated_bytes", risk.allocated_bytes},
          {"reserved_bytes", risk.reserved_bytes},
          {"peak_bytes", risk.peak_bytes},
          {"total_bytes", risk.total_bytes},
          {"utilization_ratio", risk.utilization_ratio},
          {"fragmentation_ratio", risk.fragmentation_ratio},
          {"num_ooms", risk.ooms},
          {"risk_flags",
           {{"oom_occurred", risk.oom_occurred()},
            {"high_utilization", risk.high_utilization()},
            {"fragmentation_warning", risk.fragmented()}}},
          {"suggestions", risk.suggestions()}};
}

// Samples for the given time. `ooms` are the failures of the process; for the whole machine, the
// kernel's OOM kills in that time.
RiskFigures collect_samples(processes::Observed& observed, const Sampling& sampling,
                            TimelineColumns& timeline) {
  RiskFigures risk;
  const std::uint64_t kills_before = deaths::system_oom_kills().value_or(0);
  processes::MemorySample sample;
  processes::LiveLine line;
  processes::Ticker ticker{sampling.interval_s, sampling.duration_s, observed.pid()};
  while (observed.sample(sample)) {
    risk.add(sample);
    timeline.add(sample);
    line.show(ticker.elapsed_s(), sample);
    if (!ticker.next()) break;
  }
  risk.ooms = observed.failures();
  if (observed.pid() < 0) {
    const std::uint64_t kills = deaths::system_oom_kills().value_or(kills_before);
    risk.ooms += kills > kills_before ? kills - kills_before : 0;
  }
  return risk;
}

}  // namespace

RiskFigures diagnose(processes::Observed& observed, const Sampling& sampling,
                     DiagnoseArtifact& artifact) {
  artifact.write("environment.json", environment_json(observed));
  TimelineColumns timeline;
  RiskFigures risk = collect_samples(observed, sampling, timeline);
  artifact.write("telemetry_timeline.json", timeline.json());
  artifact.write("diagnostic_summary.json", summary_json(risk, observed));
  return risk;
}

}  // namespace oomrec::tools::findings
