// All that is found in what was read, with what to do about it: as people read it and as JSON
// (docs/commands/analyze.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/base/json.h"
#include "tools/findings/telemetry_analysis/input.h"
#include "tools/findings/telemetry_analysis/stream.h"

namespace oomrec::tools::findings {

// Which parts are wanted; what is not is null in the JSON.
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
  Json drawing() const;  // what tools/python/oomrec/_draw.py takes

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
  std::vector<StreamFindings> findings_;  // of the streams
  formats::LeakDetection leak_;
  std::optional<FirstRank> first_rank_;
  std::size_t oom_events_ = 0;
  std::vector<std::string> suggestions_;
};

}  // namespace oomrec::tools::findings
