#include "tools/formats/telemetry/records.h"

#include <algorithm>

namespace oomrec::tools::formats {
namespace {

std::optional<double> number_in(const Json& record, std::string_view key) {
  const Json& value = member(record, key);
  return value.is_number() ? std::optional{value.get<double>()} : std::nullopt;
}

}  // namespace

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

bool is_memory_snapshot(const Json& record) {
  return number_in(record, "timestamp") && number_in(record, "memory_used_mb") &&
         number_in(record, "memory_total_mb") && record.contains("gpu_id");
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
