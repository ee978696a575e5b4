// A file of records that grows while something is watched: a table, or a JSON array. It is whole
// after every record, so that whoever is killed leaves what he saw.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/base/json.h"

namespace oomrec::tools::formats {

class RecordFile {
 public:
  // `format`: "csv" or "json". Overwrites a file that is there; readable by its owner alone. An
  // empty path, and "-", is stdout. Throws Error where it cannot be made.
  RecordFile(std::string path, std::string_view format, std::vector<std::string> columns);
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  // Of the record the columns are written; one that it does not have is empty, or, of JSON, absent.
  // Throws Error where it cannot be written, as on a full disk.
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
  std::int64_t end_ = 0;  // of what stays; the array's end follows it
  std::size_t records_ = 0;
};

}  // namespace oomrec::tools::formats
