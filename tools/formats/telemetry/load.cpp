#include "tools/formats/telemetry/load.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/base/foreign_file.h"
#include "tools/base/text.h"
#include "tools/formats/telemetry/fields.h"
#include "tools/formats/telemetry/file_records.h"
#include "tools/formats/telemetry/other_versions.h"

namespace oomrec::tools::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

void add(const Json& record, const TelemetryOptions& options, LoadedTelemetry& loaded) {
  if (auto call = call_of(record)) {
    loaded.calls.push_back(*std::move(call));
    loaded.kind = "calls";
    return;
  }
  if (!options.version_1 && record.is_object() && !record.contains(kVersionKey))
    throw TelemetryProblem{"version", "schema_version is missing"};
  loaded.events.push_back(event_of(record));
  if (is_memory_snapshot(record)) loaded.kind = "snapshots";
}

}  // namespace

UnreadTelemetry::UnreadTelemetry(const fs::path& file, std::string reason, const std::string& why)
    : Error(reason == "empty" ? Exit::nothing_found : Exit::bad_input,
            fmt::format("{}: {}", printable(file.string()), printable(why)),
            "Give a telemetry file (JSON, JSON lines, CSV), a bundle or a recording."),
      reason_(std::move(reason)) {}

std::string telemetry_text(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(file, error)) throw TelemetryProblem{"file", "there is no such file"};
  try {
    return read_foreign_file(ForeignPath::named(file), kMostBytes);
  } catch (const std::runtime_error& problem) {
    throw TelemetryProblem{"file", fmt::format("it {}", problem.what())};
  }
}

LoadedTelemetry telemetry_in(std::string text, const TelemetryOptions& options) {
  FileRecords records = records_of(std::move(text), options.events_key);
  LoadedTelemetry loaded;
  if (records.is_timeline) loaded.kind = "timeline";
  bool cut = records.cut, has_no_size = false;
  for (Json& row : records.rows) {
    const bool is_last = &row == &records.rows.back();
    const std::size_t events = loaded.events.size();
    try {
      add(row, options, loaded);
    } catch (const TelemetryProblem& problem) {
      cut = records.may_be_cut && is_last;
      if (cut) break;
      const std::size_t number = static_cast<std::size_t>(&row - records.rows.data()) + 1;
      throw TelemetryProblem{problem.reason(),
                             fmt::format("record {}: {}", number, problem.what())};
    }
    if (loaded.events.size() > events && !row.contains(kVersionKey) && !has_size(row))
      has_no_size = true;
    row = nullptr;  // a large file's records and events do not fit in memory together
  }
  const auto note = [&](const char* name) {
    loaded.notes.push_back(telemetry_fields().notes.at(name).get<std::string>());
  };
  if (cut)
    note("cut");
  else if (records.may_be_cut)
    note("may_be_cut");
  if (has_no_size) note("no_size");
  return loaded;
}

LoadedTelemetry load_telemetry(const fs::path& file) {
  try {
    LoadedTelemetry loaded = telemetry_in(telemetry_text(file));
    std::ranges::stable_sort(loaded.events, {}, &TelemetryEvent::timestamp_ns);
    return loaded;
  } catch (const TelemetryProblem& problem) {
    throw UnreadTelemetry{file, problem.reason(), problem.what()};
  }
}

}  // namespace oomrec::tools::formats
