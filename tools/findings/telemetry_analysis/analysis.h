// The findings of `oomrec analyze` and its suggestions, as text and as JSON
// (docs/commands/analyze.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/base/json.h"
#include "tools/findings/telemetry_analysis/input.h"
#include "tools/findings/telemetry_analysis/stream.h"

namespace oomrec::tools::findings {

// The parts to show. The others are null in the JSON.
struct AnalyzeParts {
  bool leaks = true;     // leak signs, functions that leak
  bool optimize = true;  // patterns, fragmentation, hidden memory, suggestions
};

class Analysis {
 public:
  Analysis(AnalyzeInput input, AnalyzeParts parts);

  bool empty() const { return input_.events.empty() && input_.calls.empty(); }
  Json json() const;
  std::string text() const;
  Json drawing() const;  // input for tools/python/oomrec/_impl/draw.py

 private:
  void find_leaks();
  void find_suggestions();
  void suggest(std::string text);
  Json stream_json(const Stream& stream, const StreamFindings& found) const;
  std::string stream_text(const Stream& stream, const StreamFindings& found) const;
  std::string leaks_text() const;
  std::string functions_text() const;

  AnalyzeInput input_;
  const AnalyzeParts parts_;
  std::int64_t begin_ns_ = 0;
  std::vector<Stream> streams_;
  std::vector<StreamFindings> findings_;  // of each stream
  formats::LeakDetection leak_;
  std::optional<FirstRank> first_rank_;
  std::size_t oom_events_ = 0;
  std::vector<std::string> suggestions_;
};

}  // namespace oomrec::tools::findings
