// `oomrec diagnose`: samples memory for a few seconds, judges whether it is at risk, and writes
// the evidence to a directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tools/base/error.h"
#include "tools/base/json.h"
#include "tools/processes/observe/observed.h"

namespace oomrec::tools::findings {

// The output directory of `oomrec diagnose`.
class DiagnoseArtifact {
 public:
  // Creates the directory `output`. If that exists, creates NAME-YYYYmmdd-HHMMSS in it; if it is
  // empty, in the working directory. Appends -N if that name is taken. Throws Error.
  DiagnoseArtifact(const std::string& output, const std::string& name);

  const std::filesystem::path& path() const { return path_; }

  void write(const std::string& name, const Json& value);

  // Writes manifest.json, which lists the other files: call it last.
  void finish(const std::vector<std::string>& command_line, int exit_code, bool risk,
              const std::string& error);

 private:
  std::filesystem::path path_;
  std::vector<std::string> files_;
};

// Judges from a few seconds of samples whether memory is at risk.
struct RiskFigures {
  std::uint64_t allocated_bytes = 0, reserved_bytes = 0, peak_bytes = 0, total_bytes = 0;
  double utilization_ratio = 0;    // used ÷ the nearest limit, highest of the samples
  double fragmentation_ratio = 0;  // inactive ÷ reserved, highest of the samples
  std::uint64_t ooms = 0;
  std::string bound;  // name of that limit

  void add(const processes::MemorySample& sample);

  bool oom_occurred() const { return ooms != 0; }
  bool high_utilization() const { return utilization_ratio >= 0.85; }
  bool fragmented() const { return fragmentation_ratio >= 0.3; }
  bool any() const { return oom_occurred() || high_utilization() || fragmented(); }

  std::vector<std::string> suggestions() const;
  std::vector<std::string> findings() const;  // one line for each risk
};

struct Sampling {
  double duration_s = 5, interval_s = 0.5;
};

// Writes environment.json, telemetry_timeline.json and diagnostic_summary.json. Leaves
// manifest.json to DiagnoseArtifact::finish().
RiskFigures diagnose(processes::Observed& observed, const Sampling& sampling,
                     DiagnoseArtifact& artifact);

// The exit codes of `oomrec diagnose`, the only command in which 2 does not mean bad input.

inline constexpr Exit kDiagnoseFailed = static_cast<Exit>(1);  // and bad input
inline constexpr Exit kMemoryRisk = static_cast<Exit>(2);

}  // namespace oomrec::tools::findings
