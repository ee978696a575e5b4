// The input of `oomrec analyze` in one form: from a telemetry file, a bundle, a recording or a
// process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/findings/telemetry_analysis/functions.h"
#include "tools/formats/telemetry/event.h"

namespace oomrec::tools::findings {

// A leaking function (from rows of calls) or stack (from a recording).
struct LeakRow {
  std::string name;
  formats::LeakDetection detection;
};

struct AnalyzeInput {
  std::string path;  // of the source, as the user named it or as it was found
  std::string kind;  // "telemetry", "snapshots", "calls", "timeline", "recording"
  std::vector<formats::TelemetryEvent> events;
  std::vector<formats::FunctionCall> calls;
  std::vector<LeakRow> leaks;
  // From a recording's stacks, which is better than from samples.
  std::optional<formats::LeakDetection> detected;
  FunctionCurves curves;            // only of a recording
  std::vector<std::string> advice;  // only of a recording
};

// `named`: a path, or any argument of open_source(). Throws Error.
AnalyzeInput analyze_input(const std::string& named);

}  // namespace oomrec::tools::findings
