// `oomrec diagnose`: looks at memory for a few seconds, says whether it is at risk, and leaves the
// evidence in a directory. The one command where exit code 2 is no bad input.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>

#include "tools/base/arguments.h"
#include "tools/base/text.h"
#include "tools/commands/commands.h"
#include "tools/deaths/counters.h"
#include "tools/findings/diagnose/artifact.h"
#include "tools/findings/diagnose/exit.h"
#include "tools/findings/diagnose/risk.h"
#include "tools/processes/launch/facts.h"
#include "tools/processes/observe/live_line.h"
#include "tools/processes/observe/ticker.h"
#include "tools/processes/system/system.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kExamples =
    "  oomrec diagnose                             the machine's first GPU, else its memory\n"
    "  oomrec diagnose --duration 30 train.py      a recorded process\n"
    "  oomrec diagnose --output evidence --device cpu || mail-someone\n"
    "\n"
    "Exit codes: 0 fine; 1 it failed, or was called wrongly; 2 memory is at risk: 85 % of the\n"
    "nearest limit in use, 30 % of what is reserved inactive, or memory ran out.\n";

struct DiagnoseOptions {
  std::string process, device, output, name = "oomrec-diagnose";
  double duration_s = 5, interval_s = 0.5;
};

// {timestamps, allocated, reserved}, look by look.
struct TimelineColumns {
  Json timestamps = Json::array(), allocated = Json::array(), reserved = Json::array();

  void add(const processes::Look& look) {
    timestamps.push_back(static_cast<double>(look.realtime_ns) / 1e9);
    allocated.push_back(look.allocated_bytes);
    reserved.push_back(look.reserved_bytes);
  }
  Json json() const {
    return {{"timestamps", timestamps}, {"allocated", allocated}, {"reserved", reserved}};
  }
};

Json environment_json(const processes::Observed& observed) {
  const processes::SystemFacts system = processes::system_facts();
  Json environment{{"schema_version", 1}, {"oomrec_version", OOMREC_VERSION}};
  environment.update(processes::system_json(system, processes::python_facts(true)));
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

Json summary_json(const findings::RiskFigures& risk, const processes::Observed& observed) {
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

// Refusals that the process has met, and kills by the kernel on the machine while it was looked at.
findings::RiskFigures watch(processes::Observed& observed, const DiagnoseOptions& options,
                            TimelineColumns& timeline) {
  findings::RiskFigures risk;
  const std::uint64_t kills_before = deaths::system_oom_kills().value_or(0);
  processes::Look look;
  processes::LiveLine line;
  processes::Ticker ticker{options.interval_s, options.duration_s, observed.pid()};
  while (observed.look(look)) {
    risk.add(look);
    timeline.add(look);
    line.show(ticker.elapsed_s(), look);
    if (!ticker.next()) break;
  }
  risk.ooms = observed.failures();
  if (observed.pid() < 0) {
    const std::uint64_t kills = deaths::system_oom_kills().value_or(kills_before);
    risk.ooms += kills > kills_before ? kills - kills_before : 0;
  }
  return risk;
}

void print_end(const std::filesystem::path& artifact, std::string_view status,
               const std::vector<std::string>& findings) {
  fmt::print("Artifact: {}\nStatus: {}\n", printable(artifact.string()), status);
  fmt::print("Findings: {}\n",
             findings.empty() ? "none" : fmt::format("{}", fmt::join(findings, "; ")));
}

Exit diagnose(const DiagnoseOptions& options, const Words& words) {
  const processes::DeviceChoice choice = processes::DeviceChoice::of(options.device);
  const std::unique_ptr<processes::Observed> observed =
      options.process.empty() ? processes::observe_machine(choice)
                              : processes::observe_process(options.process, choice);
  findings::DiagnoseArtifact artifact{options.output, options.name};
  Words line = {"oomrec", "diagnose"};
  line.insert(line.end(), words.begin(), words.end());
  try {
    artifact.write("environment.json", environment_json(*observed));
    TimelineColumns timeline;
    const findings::RiskFigures risk = watch(*observed, options, timeline);
    artifact.write("telemetry_timeline.json", timeline.json());
    artifact.write("diagnostic_summary.json", summary_json(risk, *observed));
    const Exit exit = risk.any() ? findings::kMemoryRisk : Exit::shown;
    artifact.finish(line, code(exit), risk.any(), "");
    print_end(artifact.path(), risk.any() ? "MEMORY_RISK" : "OK", risk.findings());
    return exit;
  } catch (const std::exception& error) {
    print_end(artifact.path(), "FAILED", {printable(error.what())});
    artifact.finish(line, code(findings::kDiagnoseFailed), false, error.what());
    throw;
  }
}

}  // namespace

int diagnose_command(const Words& words) {
  Arguments arguments{
      "diagnose", "[OPTIONS] [PID|PROGRAM]",
      "Looks at memory for a few seconds, of the machine or of a process, says whether it is at "
      "risk, and leaves a directory of evidence: environment.json, telemetry_timeline.json, "
      "diagnostic_summary.json, manifest.json.",
      kExamples};
  DiagnoseOptions options;
  arguments.positional("PID|PROGRAM", options.process, "a process; without it the machine");
  arguments.option("--output", "DIR", options.output,
                   "the directory, or one that is there already, to make it in (.)");
  arguments.option("--name", "NAME", options.name,
                   "what one that is made in another is called, before the date (oomrec-diagnose)");
  arguments.option("--device", "DEVICE", options.device,
                   "a GPU by number (0, cuda:0), or the host (cpu)", {"cpu", "0"});
  arguments.option("--duration", "SECONDS", options.duration_s, "how long (5)");
  arguments.option("--interval", "SECONDS", options.interval_s, "time between two looks (0.5)");
  if (!arguments.parse(words, findings::kDiagnoseFailed)) return code(Exit::shown);
  try {
    return code(diagnose(options, words));
  } catch (const Error& error) {
    throw Error{findings::kDiagnoseFailed, error.what(), error.what_to_do()};
  } catch (const std::exception& error) {
    throw Error{findings::kDiagnoseFailed, error.what(),
                "`oomrec diagnose --help` shows how it is used."};
  }
}

}  // namespace oomrec::tools::commands
