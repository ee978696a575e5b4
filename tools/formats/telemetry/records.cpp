#include "tools/formats/telemetry/records.h"

#include <algorithm>

#include "tools/formats/telemetry/version_1.h"

namespace oomrec::tools::formats {

Json snapshot_json(const MemorySnapshot& snapshot) {
  return {{"timestamp", snapshot.timestamp},
          {"memory_used_mb", snapshot.used_mb},
          {"memory_total_mb", snapshot.total_mb},
          {"memory_percent", snapshot.percent()},
          {"gpu_id", snapshot.gpu_id}};
}

std::vector<std::string> snapshot_columns() {
  std::vector<std::string> columns;
  const Json row = snapshot_json({});
  for (const auto& [key, value] : row.items()) columns.push_back(key);
  return columns;
}

std::optional<MemorySnapshot> snapshot_of(const Json& record) {
  const auto timestamp = number_in(record, "timestamp");
  const auto used = number_in(record, "memory_used_mb");
  const auto total = number_in(record, "memory_total_mb");
  if (!timestamp || !used || !total || !record.contains("gpu_id")) return std::nullopt;
  return MemorySnapshot{*timestamp, *used, *total,
                        static_cast<std::int64_t>(number_in(record, "gpu_id").value_or(-1))};
}

Json call_json(const FunctionCall& call) {
  return {{"name", call.name},
          {"start_time", call.start_time},
          {"end_time", call.end_time},
          {"duration", call.end_time - call.start_time},
          {"memory_start_mb", call.start_mb},
          {"memory_end_mb", call.end_mb},
          {"memory_peak_mb", call.peak_mb}};
}

std::optional<FunctionCall> call_of(const Json& record) {
  const auto name = text_of(record, "name");
  const auto start = number_in(record, "start_time");
  const auto end = number_in(record, "end_time");
  const auto before = number_in(record, "memory_start_mb");
  const auto after = number_in(record, "memory_end_mb");
  if (!name || !start || !end || !before || !after) return std::nullopt;
  const double peak = number_in(record, "memory_peak_mb").value_or(std::max(*before, *after));
  return FunctionCall{*name, *start, *end, *before, *after, peak};
}

Json leak_detection_json(const LeakDetection& leak) {
  return {{"detected", leak.detected},
          {"severity", leak.severity},
          {"memory_increase_mb", leak.increase_mb},
          {"time_window_seconds", leak.window_seconds},
          {"suggestions", leak.suggestions}};
}

}  // namespace oomrec::tools::formats
