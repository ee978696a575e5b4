// `oomrec diagnose`: samples memory for a few seconds, reports whether it is at risk, and writes
// the evidence to a directory. Only here exit code 2 does not mean bad input.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>

#include "tools/base/arguments.h"
#include "tools/base/text.h"
#include "tools/commands/commands.h"
#include "tools/findings/diagnose/diagnosis.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kDiagnoseExamples =
    "  oomrec diagnose                             the machine's first GPU, else its memory\n"
    "  oomrec diagnose --duration 30 train.py      a recorded process\n"
    "  oomrec diagnose --output evidence --device cpu || mail-someone\n"
    "\n"
    "Exit codes: 0 no risk; 1 failure or bad input; 2 memory is at risk: 85 % of the "
    "nearest\nlimit in use, 30 % of what is reserved inactive, or memory ran out.\n";

struct DiagnoseOptions {
  std::string process, device, output, name = "oomrec-diagnose";
  findings::Sampling sampling;
};

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
    const findings::RiskFigures risk = findings::diagnose(*observed, options.sampling, artifact);
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
      "Samples the memory of the machine or a process for a few seconds, reports whether it is at "
      "risk, and writes a directory of evidence: environment.json, telemetry_timeline.json, "
      "diagnostic_summary.json, manifest.json.",
      kDiagnoseExamples};
  DiagnoseOptions options;
  arguments.positional("PID|PROGRAM", options.process, "a process (default: the machine)");
  arguments.option("--output", "DIR", options.output,
                   "the directory to create, or an existing one to create it in (.)");
  arguments.option("--name", "NAME", options.name,
                   "its name in an existing directory, before the date (oomrec-diagnose)");
  arguments.option("--device", "DEVICE", options.device,
                   "a GPU by number (0, cuda:0), or the host (cpu)", {"cpu", "0"});
  arguments.option("--duration", "SECONDS", options.sampling.duration_s, "how long (5)");
  arguments.option("--interval", "SECONDS", options.sampling.interval_s,
                   "time between two samples (0.5)");
  if (!arguments.parse(words, findings::kDiagnoseFailed)) return code(Exit::shown);
  try {
    return code(diagnose(options, words));
  } catch (const Error& error) {
    throw Error{findings::kDiagnoseFailed, error.what(), error.what_to_do()};
  } catch (const std::exception& error) {
    throw Error{findings::kDiagnoseFailed, error.what(),
                "`oomrec diagnose --help` shows its usage."};
  }
}

}  // namespace oomrec::tools::commands
