// A file of records that grows: a table or a JSON array. It is valid after every record, so that a
// writer that is killed leaves a readable file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/base/json.h"

namespace oomrec::tools::formats {

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
