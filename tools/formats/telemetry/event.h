// TelemetryEvent v2: one sample of a process's memory on a device, in GPU Memory Profiler's format.
//
// The format is strict: each event has all keys, and no others. Unknown values are null. A table
// defines the keys and their rules: fields.h.
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
  std::int64_t pid = -1;  // −1: unknown, or not of a single process
  std::string host = "unknown";
  std::int64_t device_id = -1;  // −1: the host
  std::int64_t allocated_bytes = 0, reserved_bytes = 0;
  std::optional<std::int64_t> active_bytes, inactive_bytes;
  std::int64_t change_bytes = 0;  // of allocated_bytes since the previous event
  std::int64_t used_bytes = 0;    // of the device, by all processes
  std::optional<std::int64_t> free_bytes, total_bytes;
  std::optional<std::string> context;
  Json metadata = Json::object();
};

// Keys are in the order of the format. An unknown rank is written as rank 0 of 1, without a job.
Json event_json(const TelemetryEvent& event);
std::vector<std::string> event_columns();  // all keys of event_json()

// Reads a record of version 2, or of version 1, which has no schema_version and is converted.
// Throws TelemetryProblem.
TelemetryEvent event_of(const Json& record);

}  // namespace oomrec::tools::formats
