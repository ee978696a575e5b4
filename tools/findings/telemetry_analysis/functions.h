// Functions over time: the bytes that each held, from a recording's checkpoints or from rows of
// calls.
#pragma once

#include <string>
#include <vector>

#include "tools/bundles/store/source.h"
#include "tools/findings/time_series/leak.h"
#include "tools/formats/telemetry/records.h"
#include "tools/recording/analysis/stacks.h"

namespace oomrec::tools::findings {

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

}  // namespace oomrec::tools::findings
