// Files of telemetry as records: JSON, JSON lines and tables, told apart by how they begin.
//
// What a killed writer leaves is read as far as it goes, and so is what Python's own writers make.
// The reader of the Python package takes and refuses the same files (tests/telemetry_corpus).
#pragma once

#include <string>
#include <vector>

#include "tools/base/json.h"

namespace oomrec::tools::formats {

struct FileRecords {
  std::vector<Json> rows;
  bool is_timeline = false;
  bool cut = false;         // the last line was cut off, and is not among the rows
  bool may_be_cut = false;  // the last row has no line end: who wrote it may have been killed
};

// Throws TelemetryProblem where there can be none in it.
FileRecords records_of(std::string text);

}  // namespace oomrec::tools::formats
