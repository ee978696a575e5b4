#include "tools/formats/telemetry/records.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tools/base/csv.h"
#include "tools/base/descriptor.h"
#include "tools/base/error.h"
#include "tools/base/text.h"

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

namespace {

constexpr std::string_view kEndOfArray = "\n]\n";

}  // namespace

RecordFile::RecordFile(std::string path, std::string_view format, std::vector<std::string> columns)
    : path_(std::move(path)), csv_(format == "csv"), columns_(std::move(columns)) {
  descriptor_ = path_.empty() || path_ == "-"
                    ? STDOUT_FILENO
                    : open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor_ < 0) {
    throw Error{Exit::bad_input,
                fmt::format("{} cannot be written: {}", printable(path_), std::strerror(errno)),
                "Name a file in a directory that you may write to: --output FILE"};
  }
  can_seek_ = !is_stdout() && lseek(descriptor_, 0, SEEK_CUR) == 0;
  if (csv_) {
    std::string names;
    for (const std::string& column : columns_)
      names += (names.empty() ? "" : ",") + csv_cell(column);
    write_all(names + "\n");
  } else {
    add_to_array("[");
  }
}

RecordFile::~RecordFile() {
  if (!csv_ && !can_seek_) {
    try {
      write_all(kEndOfArray);
    } catch (const Error&) {
      // add() has reported the full disk already.
    }
  }
  if (!is_stdout()) close(descriptor_);
}

void RecordFile::add(const Json& record) {
  if (csv_) {
    std::string text;
    for (const std::string& column : columns_)
      text += (&column == &columns_.front() ? "" : ",") + csv_cell(member(record, column));
    write_all(text + "\n");
  } else {
    add_to_array((records_ != 0 ? ",\n" : "\n") + json_text(record));
  }
  ++records_;
}

// If it can seek, overwrites the array's end with `text` and a new end, in one write.
void RecordFile::add_to_array(std::string_view text) {
  if (!can_seek_) return write_all(text);
  lseek(descriptor_, end_, SEEK_SET);
  write_all(std::string{text} + std::string{kEndOfArray});
  end_ += static_cast<std::int64_t>(text.size());
}

void RecordFile::write_all(std::string_view text) {
  if (!tools::write_all(descriptor_, text))
    throw Error{Exit::bad_input,
                fmt::format("{} could not be written: {}",
                            is_stdout() ? "the output" : printable(path_), std::strerror(errno)),
                "Is the disk behind it full, or the reader gone?"};
}

}  // namespace oomrec::tools::formats
