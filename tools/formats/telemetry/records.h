// The other rows that GPU Memory Profiler's tools exchange: Memory Snapshot, Function Call and Leak
// Detection Result. A megabyte is 1024² bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/base/json.h"

namespace oomrec::tools::formats {

inline constexpr double kMegabyte = 1024.0 * 1024.0;

struct MemorySnapshot {
  double timestamp = 0;  // seconds since 1970
  double used_mb = 0, total_mb = 0;
  std::int64_t gpu_id = -1;  // −1: the host

  double percent() const { return total_mb > 0 ? 100 * used_mb / total_mb : 0; }
};
Json snapshot_json(const MemorySnapshot& snapshot);
std::vector<std::string> snapshot_columns();
bool is_memory_snapshot(const Json& record);

struct FunctionCall {
  std::string name;
  double start_time = 0, end_time = 0;  // seconds since 1970
  double start_mb = 0, end_mb = 0, peak_mb = 0;
};
Json call_json(const FunctionCall& call);
std::optional<FunctionCall> call_of(const Json& record);  // nothing: another kind of record

struct LeakDetection {
  bool detected = false;
  std::string_view severity = "none";
  double increase_mb = 0, window_seconds = 0;
  std::vector<std::string> suggestions;
};
Json leak_detection_json(const LeakDetection& leak);

}  // namespace oomrec::tools::formats
