// The other rows that GPU Memory Profiler's tools exchange: Memory Snapshot, Function Call and Leak
// Detection Result. A megabyte is 1024² bytes.
#pragma once

#include <cstdint>
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

// A file of records that grows: a table or a JSON array. It is valid after every record, so that a
// writer that is killed leaves a readable file.
class RecordFile {
 public:
  // `format`: "csv" or "json". Overwrites an existing file. Only its owner can read a new one. An
  // empty path or "-" is stdout. Throws Error if the file cannot be opened.
  RecordFile(std::string path, std::string_view format, std::vector<std::string> columns);
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  // In a table, only the columns are written, and a missing value is an empty cell. In JSON, the
  // record is written as it is. Throws Error if it cannot be written, as on a full disk.
  void add(const Json& record);

  std::size_t records() const { return records_; }
  bool is_stdout() const { return descriptor_ == 1; }

 private:
  void write_all(std::string_view text);
  void add_to_array(std::string_view text);

  const std::string path_;
  const bool csv_;
  const std::vector<std::string> columns_;
  int descriptor_ = -1;
  bool can_seek_ = false;
  std::int64_t end_ = 0;  // offset of the array's closing bracket
  std::size_t records_ = 0;
};

}  // namespace oomrec::tools::formats
