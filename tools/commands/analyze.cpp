// `oomrec analyze`: leaks, patterns and hidden memory in telemetry or a recording.
#include <fmt/format.h>

#include "tools/base/arguments.h"
#include "tools/base/output_file.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/options.h"
#include "tools/commands/commands.h"
#include "tools/findings/telemetry_analysis/analysis.h"
#include "tools/views/draw/draw.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kAnalyzeExamples =
    "  oomrec analyze events.json                     from oomrec track or GPU Memory Profiler\n"
    "  oomrec analyze memory.csv --visualize          with pictures in ./plots\n"
    "  oomrec analyze oom_dumps/oom_cpu_20260303_152030_001\n"
    "  oomrec analyze events.json --detect-leaks --format json | jq .leak_detection.detected\n";

}  // namespace

int analyze_command(const Words& words) {
  Arguments arguments{
      "analyze", "[OPTIONS] [FILE|BUNDLE]",
      "Analyzes samples over time: leaks, spikes, steps, periods and trends, fragmentation, device "
      "memory that no allocator reserved, and what to try. Reads telemetry (versions 2 and 1) and "
      "rows of `oomrec monitor` as JSON, JSON lines or CSV, rows of function calls, bundles and "
      "recordings.",
      kAnalyzeExamples};
  std::string named;
  findings::AnalyzeParts parts{false, false};
  bool visualize = false;
  bool visualization = false;
  bool json = false;
  std::string plot_directory = "plots";
  std::string report;
  std::string output;
  std::string format;
  arguments.positional("FILE|BUNDLE", named,
                       fmt::format("a file of telemetry, {}", bundles::kReadable));
  arguments.flag("--detect-leaks", parts.leaks, "only leaks, unless --optimize is also given");
  arguments.flag("--optimize", parts.optimize,
                 "patterns, fragmentation, hidden memory and what to try, without the leaks");
  arguments.flag(
      "--visualize", visualize,
      "draw timeline, heat map and functions as PNG and HTML (needs python3 with matplotlib)");
  arguments.flag("--visualization", visualization, "same as --visualize");
  arguments.option("--plot-dir", "DIR", plot_directory, "directory for the pictures (plots)");
  arguments.option("--report", "FILE", report, "also write the page to FILE");
  arguments.option("--output", "FILE", output, "write the analysis to FILE");
  arguments.choice("--format", "FORMAT", format, {"json", "txt"},
                   "format of the analysis (txt; with --output json)");
  arguments.flag("--json", json, "same as --format json");
  if (!arguments.parse(words)) return code(Exit::shown);
  if (!parts.leaks && !parts.optimize) parts = {};
  if (json) format = "json";
  if (format.empty()) format = output.empty() ? "txt" : "json";

  const findings::Analysis analysis{findings::analyze_input(named), parts};
  if (analysis.empty()) {
    throw Error{Exit::nothing_found,
                fmt::format("there is nothing to analyze in {}", printable(named)),
                "Record some: oomrec track --output FILE, or oomrec monitor --output FILE"};
  }
  const std::string page =
      format == "json" ? json_text(analysis.json(), 2) + "\n" : analysis.text();
  if (output.empty()) {
    fmt::print("{}", page);
  } else {
    write_output(output, page, IfExists::overwrite);
    remark(fmt::format("the analysis is in {}", printable(output)));
  }
  if (!report.empty()) {
    write_output(report, analysis.text(), IfExists::overwrite);
    remark(fmt::format("the report is in {}", printable(report)));
  }
  if (!visualize && !visualization) return code(Exit::shown);
  const views::DrawResult drawn = views::draw(analysis.drawing(), plot_directory);
  for (const std::string& file : drawn.files) remark(fmt::format("drawn: {}", printable(file)));
  if (drawn.missing.empty()) return code(Exit::shown);
  remark(drawn.missing);
  return code(Exit::bad_input);
}

}  // namespace oomrec::tools::commands
