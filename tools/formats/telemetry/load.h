// Reads a file of telemetry, whoever wrote it: events of version 2 or 1, rows of `oomrec monitor`,
// function calls; as a JSON array, JSON lines or a table.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/formats/telemetry/event.h"
#include "tools/formats/telemetry/records.h"

namespace oomrec::tools::formats {

struct LoadedTelemetry {
  std::string kind;                    // "telemetry", "snapshots", "calls", "timeline"
  std::vector<TelemetryEvent> events;  // in order of time
  std::vector<FunctionCall> calls;
  bool torn = false;  // the last line of JSON lines was cut, and is left out
};

// Throws Error with bad_input where a record is not one of these, and says which and why.
LoadedTelemetry load_telemetry(const std::filesystem::path& file);

// A snapshot as an event: what is used counts as allocated.
TelemetryEvent event_of(const MemorySnapshot& snapshot);

}  // namespace oomrec::tools::formats
