// Reads the records of a telemetry file: JSON, JSON lines or a table, recognized by its first
// bytes.
//
// It accepts the output of Python's writers, and files that a killed writer left incomplete.
// tests/telemetry_corpus has an example of each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/base/json.h"

namespace oomrec::tools::formats {

struct FileRecords {
  std::vector<Json> rows;
  bool is_timeline = false;
  bool cut = false;         // the last line was incomplete, and is not in `rows`
  bool may_be_cut = false;  // the last row has no line end: its writer may have been killed
};

// `events_key` names the list in a JSON object; by default it is one that writers use. Throws
// TelemetryProblem if the text is not in one of these formats.
FileRecords records_of(std::string text, const std::optional<std::string>& events_key = {});

}  // namespace oomrec::tools::formats
