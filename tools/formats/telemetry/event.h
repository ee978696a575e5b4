// TelemetryEvent v2: one look at the memory of a process on a device, as GPU Memory Profiler's
// readers take it. Strict: every key of the format is there, and no other; what is not known is
// null. The keys and their rules are a table: fields.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/base/json.h"
#include "tools/formats/telemetry/rank.h"

namespace oomrec::tools::formats {

struct TelemetryEvent : RankTags {
  std::int64_t timestamp_ns = 0;  // since 1970
  std::string event_type = "sample";
  std::string collector = "oomrec";
  std::int64_t sampling_interval_ms = 0;
  std::int64_t pid = -1;  // −1: not known, or not of one process
  std::string host = "unknown";
  std::int64_t device_id = -1;  // −1: the host
  std::int64_t allocated_bytes = 0, reserved_bytes = 0;
  std::optional<std::int64_t> active_bytes, inactive_bytes;
  std::int64_t change_bytes = 0;  // of allocated_bytes, since the event before
  std::int64_t used_bytes = 0;    // of the device, by all that is counted on it
  std::optional<std::int64_t> free_bytes, total_bytes;
  std::optional<std::string> context;
  Json metadata = Json::object();
};

// Keys in the order of the format; the rank's only where they are known.
Json event_json(const TelemetryEvent& event);
std::vector<std::string> event_columns();  // of event_json() with all of them

// `record` is one of version 2, or of version 1, which has no schema_version and is converted.
// Throws TelemetryProblem.
TelemetryEvent event_of(const Json& record);

}  // namespace oomrec::tools::formats
