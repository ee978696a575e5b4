// Functions over time: what each held, look by look, out of a recording's checkpoints or out of
// rows of calls.
#pragma once

#include <string>
#include <vector>

#include "tools/bundles/store/source.h"
#include "tools/findings/time_series/leak.h"
#include "tools/formats/telemetry/records.h"
#include "tools/recording/analysis/stacks.h"

namespace oomrec::tools::findings {

// By the name that it is known by (analysis/statistics.h): what it held at each checkpoint. One
// that is not among a checkpoint's largest counts as nothing there.
struct FunctionCurve {
  std::string name;
  std::vector<double> bytes;  // by checkpoint

  double peak() const;
};
struct FunctionCurves {
  std::vector<double> times;          // of checkpoints, seconds since 1970
  std::vector<FunctionCurve> curves;  // the highest peak first
};
FunctionCurves function_curves(const recording::Recording& recording, recording::Stacks& stacks,
                               const recording::Places& places);

// A row for each function: from the first checkpoint at which it held something to the last one.
std::vector<formats::FunctionCall> calls_of(const FunctionCurves& curves, std::size_t most);

struct NamedLeak {
  std::string name;
  FunctionLeak leak;
  double window_seconds = 0;
};
// Of rows that name the same function; what grew most first.
std::vector<NamedLeak> function_leaks_of(const std::vector<formats::FunctionCall>& calls);

}  // namespace oomrec::tools::findings
