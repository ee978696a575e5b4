// Samples memory for a few seconds, and writes the evidence to a directory.
#pragma once

#include <string>
#include <vector>

#include "tools/findings/diagnose/artifact.h"
#include "tools/findings/diagnose/risk.h"
#include "tools/processes/observe/observed.h"

namespace oomrec::tools::findings {

struct Sampling {
  double duration_s = 5, interval_s = 0.5;
};

// Writes environment.json, telemetry_timeline.json and diagnostic_summary.json. Leaves
// manifest.json to DiagnoseArtifact::finish().
RiskFigures diagnose(processes::Observed& observed, const Sampling& sampling,
                     DiagnoseArtifact& artifact);

}  // namespace oomrec::tools::findings
