// Loads a telemetry file of any writer: events of version 2 or 1, rows of `oomrec monitor`,
// function calls; as a JSON array, JSON lines or a table.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/base/error.h"
#include "tools/formats/telemetry/event.h"
#include "tools/formats/telemetry/records.h"

namespace oomrec::tools::formats {

struct LoadedTelemetry {
  std::string kind = "telemetry";  // or "snapshots", "calls", "timeline"
  std::vector<TelemetryEvent> events;
  std::vector<FunctionCall> calls;
  std::vector<std::string> notes;  // for the user, from the table's notes
};

// Why a file is rejected. `reason` is that of TelemetryProblem.
class UnreadTelemetry : public Error {
 public:
  UnreadTelemetry(const std::filesystem::path& file, std::string reason, const std::string& why);

  const std::string& reason() const noexcept { return reason_; }

 private:
  std::string reason_;
};

// Where a file's records are, and which of them are read.
struct TelemetryOptions {
  std::optional<std::string> events_key;  // of the list in a JSON object
  bool version_1 = true;                  // false: a record without schema_version is invalid
};

// In the order of the text. Throws TelemetryProblem, which names the first invalid record.
LoadedTelemetry telemetry_in(std::string text, const TelemetryOptions& options = {});

// The contents of a file. Throws TelemetryProblem.
std::string telemetry_text(const std::filesystem::path& file);

// Sorted by time. Throws UnreadTelemetry, which names the first invalid record and the reason.
LoadedTelemetry load_telemetry(const std::filesystem::path& file);

}  // namespace oomrec::tools::formats
