#include "tools/formats/telemetry/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tools/base/csv.h"
#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/formats/telemetry/version_1.h"

namespace oomrec::tools::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 30;

// Records as they are in the file.
struct Records {
  std::vector<Json> rows;
  bool cells = false;  // values are texts of a table
  bool torn = false;
};

[[noreturn]] void refuse(const fs::path& file, const std::string& why) {
  throw Error{Exit::bad_input, fmt::format("{}: {}", printable(file.string()), why),
              "Give a file of telemetry (JSON, JSON lines, CSV), a bundle or a recording."};
}

std::string contents(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(file, error)) refuse(file, "there is no such file");
  if (!fs::is_regular_file(file, error) || fs::file_size(file, error) > kMostBytes)
    refuse(file, "it is no file of telemetry, or larger than 1 GiB");
  std::ifstream stream{file, std::ios::binary};
  if (!stream) refuse(file, "it may not be read");
  return {std::istreambuf_iterator<char>{stream}, {}};
}

// Nothing where it is no JSON, or nested deeper than any record is.
Json parsed(std::string_view text) {
  const auto not_too_deep = [](int depth, Json::parse_event_t, Json&) {
    if (depth > 16) throw std::length_error{"nested too deep"};
    return true;
  };
  try {
    return Json::parse(text, not_too_deep, false);
  } catch (const std::exception&) {
    return Json(Json::value_t::discarded);
  }
}

Records lines_of_json(const fs::path& file, std::string_view text) {
  Records records;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    ++number;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    Json row = parsed(line);
    if (row.is_discarded() && end == text.npos && !records.rows.empty()) {
      records.torn = true;  // who wrote it was killed
    } else if (row.is_discarded()) {
      refuse(file, fmt::format("line {} is no JSON", number));
    } else {
      records.rows.push_back(std::move(row));
    }
  }
  return records;
}

// {"timestamps": […], "allocated": […], "reserved": […]} as rows of version 1.
std::vector<Json> rows_of_timeline(const fs::path& file, const Json& timeline) {
  const Json& times = member(timeline, "timestamps");
  const Json& allocated = member(timeline, "allocated");
  const Json& reserved = member(timeline, "reserved");
  if (!allocated.is_array() || allocated.size() != times.size() || !reserved.is_array() ||
      reserved.size() != times.size())
    refuse(file, "timestamps, allocated and reserved are not equally long");
  std::vector<Json> rows;
  for (std::size_t i = 0; i < times.size(); ++i)
    rows.push_back({{"timestamp", times[i]},
                    {"memory_allocated", allocated[i]},
                    {"memory_reserved", reserved[i]}});
  return rows;
}

Records table_of(const fs::path& file, const std::string& text) {
  const std::vector<std::vector<std::string>> rows = csv_rows(text);
  if (rows.empty() || rows[0].size() < 2) refuse(file, "it is neither JSON nor a table");
  Records records;
  records.cells = true;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].size() != rows[0].size())
      refuse(file, fmt::format("row {} has {} cells, and there are {} columns", i, rows[i].size(),
                               rows[0].size()));
    Json row = Json::object();
    for (std::size_t column = 0; column < rows[0].size(); ++column)
      row[rows[0][column]] = rows[i][column];
    records.rows.push_back(std::move(row));
  }
  return records;
}

Records records_in(const fs::path& file, bool& timeline) {
  const std::string text = contents(file);
  const std::size_t begin = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (begin == text.npos) return {};
  if (text[begin] != '[' && text[begin] != '{') return table_of(file, text.substr(begin));
  Json all = parsed(std::string_view{text}.substr(begin));
  if (all.is_discarded() && text[begin] == '{')
    return lines_of_json(file, std::string_view{text}.substr(begin));
  if (all.is_discarded()) refuse(file, "it begins as JSON does and is none");
  timeline = member(all, "timestamps").is_array();
  if (timeline) return {rows_of_timeline(file, all)};
  for (const std::string_view key : {"events", "function_calls"})
    if (const Json& list = member(all, key); list.is_array()) all = Json(list);
  if (all.is_object()) all = Json::array({all});
  return {std::vector<Json>(all.begin(), all.end())};
}

}  // namespace

TelemetryEvent event_of(const MemorySnapshot& snapshot) {
  TelemetryEvent event = event_of_version_1({{"timestamp", snapshot.timestamp},
                                             {"memory_used_mb", snapshot.used_mb},
                                             {"device", snapshot.gpu_id},
                                             {"collector", "oomrec monitor"}});
  const auto total = static_cast<std::int64_t>(std::llround(snapshot.total_mb * kMegabyte));
  if (total >= event.used_bytes && total > 0) {
    event.total_bytes = total;
    event.free_bytes = total - event.used_bytes;
  }
  return event;
}

LoadedTelemetry load_telemetry(const fs::path& file) {
  LoadedTelemetry loaded;
  bool timeline = false;
  const Records records = records_in(file, timeline);
  loaded.torn = records.torn;
  loaded.kind = timeline ? "timeline" : "telemetry";
  for (std::size_t i = 0; i < records.rows.size(); ++i) {
    const Json& row = records.rows[i];
    if (auto call = call_of(row)) {
      loaded.calls.push_back(*std::move(call));
      loaded.kind = "calls";
      continue;
    }
    try {
      if (const auto snapshot = snapshot_of(row)) {
        loaded.events.push_back(event_of(*snapshot));
        loaded.kind = "snapshots";
      } else {
        loaded.events.push_back(event_of(row, records.cells));
      }
    } catch (const std::invalid_argument& problem) {
      refuse(file, fmt::format("record {}: {}", i + 1, printable(problem.what())));
    }
  }
  std::stable_sort(loaded.events.begin(), loaded.events.end(),
                   [](const TelemetryEvent& a, const TelemetryEvent& b) {
                     return a.timestamp_ns < b.timestamp_ns;
                   });
  return loaded;
}

}  // namespace oomrec::tools::formats
