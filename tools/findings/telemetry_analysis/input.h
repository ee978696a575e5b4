// What `oomrec analyze` reads, made one: a file of telemetry, or a bundle, a recording, a process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/findings/telemetry_analysis/functions.h"
#include "tools/formats/telemetry/event.h"

namespace oomrec::tools::findings {

// A function (of rows) or a stack (of a recording) that leaks, as a Leak Detection Result.
struct LeakRow {
  std::string name;
  formats::LeakDetection detection;
};

struct AnalyzeInput {
  std::string path;  // what was read, as it was named or found
  std::string kind;  // "telemetry", "snapshots", "calls", "timeline", "recording"
  std::vector<formats::TelemetryEvent> events;
  std::vector<formats::FunctionCall> calls;
  std::vector<LeakRow> leaks;
  std::optional<formats::LeakDetection>
      detected;                     // by a recording's stacks: better than by samples
  FunctionCurves curves;            // of a recording
  std::vector<std::string> advice;  // of a recording
};

// `named`: a path, or what open_source() takes. Throws Error.
AnalyzeInput analyze_input(const std::string& named);

}  // namespace oomrec::tools::findings
