#include "tools/findings/diagnose/diagnosis.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "common/system/files.h"
#include "tools/base/output_file.h"
#include "tools/base/text.h"
#include "tools/deaths/counters.h"
#include "tools/processes/launch/facts.h"
#include "tools/processes/observe/live_line.h"
#include "tools/processes/observe/system.h"
#include "tools/processes/observe/ticker.h"

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

void RiskFigures::add(const processes::MemorySample& sample) {
  allocated_bytes = sample.allocated_bytes;
  reserved_bytes = sample.reserved_bytes;
  peak_bytes = std::max(peak_bytes, sample.allocated_bytes);
  total_bytes = sample.total_bytes.value_or(0);
  if (const double ratio = sample.bound.percent() / 100; ratio >= utilization_ratio) {
    utilization_ratio = ratio;
    bound = sample.bound.name;
  }
  if (sample.inactive_bytes && sample.reserved_bytes != 0)
    fragmentation_ratio =
        std::max(fragmentation_ratio, static_cast<double>(*sample.inactive_bytes) /
                                          static_cast<double>(sample.reserved_bytes));
}

std::vector<std::string> RiskFigures::findings() const {
  std::vector<std::string> found;
  if (oom_occurred())
    found.push_back(fmt::format("memory ran out: {}", plural(ooms, "time", "times")));
  if (high_utilization())
    found.push_back(fmt::format("{} of the {} is in use", percent_text(utilization_ratio), bound));
  if (fragmented())
    found.push_back(
        fmt::format("{} of the reserved memory is inactive", percent_text(fragmentation_ratio)));
  return found;
}

std::vector<std::string> RiskFigures::suggestions() const {
  std::vector<std::string> texts;
  if (oom_occurred())
    texts.emplace_back(
        "See why with `oomrec show`. If there is no bundle, run the program with the recorder: "
        "oomrec run -- PROGRAM");
  if (high_utilization())
    texts.emplace_back(
        "Keep 15 % free: use a smaller batch or fewer processes, or raise the limit.");
  if (fragmented())
    texts.emplace_back(
        "Free caches between phases; for PyTorch try "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.");
  return texts;
}

namespace {

namespace fs = std::filesystem;

constexpr unsigned kMostPerSecond = 1000;  // directories with the same time in their names

std::string with_time(const std::string& name) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[64];
  std::strftime(text, sizeof text, "-%Y%m%d-%H%M%S", &parts);
  return name + text;
}

// Returns 0 or an errno.
int make_directory(const fs::path& directory) {
  std::error_code error;
  if (directory.has_parent_path()) fs::create_directories(directory.parent_path(), error);
  return mkdir(directory.c_str(), 0700) == 0 ? 0 : errno;
}

}  // namespace

DiagnoseArtifact::DiagnoseArtifact(const std::string& output, const std::string& name) {
  std::error_code error;
  const fs::path named = fs::absolute(output.empty() ? "." : output, error).lexically_normal();
  int problem = EEXIST;
  if (fs::is_directory(named, error)) {
    const std::string first = with_time(name);
    for (unsigned n = 0; problem == EEXIST && n < kMostPerSecond; ++n) {
      path_ = named / (n == 0 ? first : fmt::format("{}-{}", first, n));
      problem = make_directory(path_);
    }
  } else {
    path_ = named;
    problem = make_directory(path_);
  }
  if (problem == 0) return;
  throw Error{
      kDiagnoseFailed,
      fmt::format("{} cannot be created: {}", printable(path_.string()), std::strerror(problem)),
      "Name another directory: --output DIR"};
}

void DiagnoseArtifact::write(const std::string& name, const Json& value) {
  write_output(path_ / name, json_text(value, 2) + "\n", IfExists::overwrite);
  files_.push_back(name);
}

void DiagnoseArtifact::finish(const std::vector<std::string>& command_line, int exit_code,
                              bool risk, const std::string& error) {
  constexpr const char* kName = "manifest.json";
  files_.emplace_back(kName);
  Json manifest{{"version", 1},
                {"created_iso", time_text(system::realtime_ns())},
                {"command_line", masked_words(command_line)},
                {"files", files_},
                {"exit_code", exit_code},
                {"risk_detected", risk}};
  if (!error.empty()) manifest["error"] = error;
  write_output(path_ / kName, json_text(manifest, 2) + "\n", IfExists::overwrite);
}

}  // namespace oomrec::tools::findings
