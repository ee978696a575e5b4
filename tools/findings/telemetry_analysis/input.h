// The input of `oomrec analyze` in one form: from a telemetry file, a bundle, a recording or a
// process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/bundles/store/source.h"
#include "tools/findings/time_series/patterns.h"
#include "tools/formats/telemetry/event.h"
#include "tools/formats/telemetry/records.h"
#include "tools/recording/analysis/stacks.h"

namespace oomrec::tools::findings {

// Functions over time: the bytes that each held, from a recording's checkpoints or from rows of
// calls.

// The bytes that a subject (analysis/statistics.h) held at each checkpoint; 0 where the checkpoint
// does not list it.
struct FunctionCurve {
  std::string name;
  std::vector<double> bytes;  // by checkpoint

  double peak() const;
};
struct FunctionCurves {
  std::vector<double> times;          // of checkpoints, seconds since 1970
  std::vector<FunctionCurve> curves;  // highest peak first
};
FunctionCurves function_curves(const recording::Recording& recording, recording::Stacks& stacks,
                               const recording::Locations& locations);

// A row for each function, from the first to the last checkpoint at which it held memory.
std::vector<formats::FunctionCall> calls_of(const FunctionCurves& curves, std::size_t most);

struct NamedLeak {
  std::string name;
  FunctionLeak leak;
  double window_seconds = 0;
};
// Groups the rows by function. Largest growth first.
std::vector<NamedLeak> function_leaks_of(const std::vector<formats::FunctionCall>& calls);

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
