// speedscope's file format (https://www.speedscope.app/file-format-schema.json), with three
// profiles: memory held at the end, held at the peak, and ever allocated.
#include <fmt/format.h>

#include "tools/base/text.h"
#include "tools/views/export/format.h"
#include "tools/views/export/output.h"
#include "tools/views/export/rows.h"

namespace oomrec::tools::views {
namespace {

struct ProfileKind {
  std::string_view name;
  recording::At at;
};
constexpr ProfileKind kProfiles[] = {{"live", recording::At::end},
                                     {"at the peak", recording::At::peak},
                                     {"allocated", recording::At::ever}};

Json profile_json(const ProfileKind& profile, const std::vector<HolderRow>& rows,
                  const recording::Stacks& stacks, Numbering& frames) {
  Json samples = Json::array();
  Json weights = Json::array();
  std::uint64_t sum = 0;
  bool estimated = false;
  for (const HolderRow& row : rows) {
    const std::uint64_t bytes = row.at(profile.at).bytes;
    if (bytes == 0) continue;
    const std::vector<recording::LocationId> locations = frames_of(stacks, row.stack);
    Json sample = Json::array();
    for (auto location = locations.rbegin(); location != locations.rend(); ++location)
      sample.push_back(frames(*location));
    samples.push_back(std::move(sample));
    weights.push_back(bytes);
    sum += bytes;
    estimated = estimated || row.estimated;
  }
  return {
      {"type", "sampled"},
      {"name", fmt::format("{}{}", profile.name, estimated ? " (estimated)" : "")},
      {"unit", "bytes"},
      {"startValue", 0},
      {"endValue", sum},
      {"samples", std::move(samples)},
      {"weights", std::move(weights)},
  };
}

// The format leaves out keys of unknown values.
Json frame_json(const recording::Locations& locations, recording::LocationId id) {
  const recording::Location& location = locations[id];
  Json frame{{"name", frame_name(locations, id)}};
  if (!location.file.empty()) frame["file"] = printable(location.file);
  if (location.line != 0) frame["line"] = location.line;
  return frame;
}

}  // namespace

void write_speedscope(const ExportRequest& request, Output& output) {
  const std::vector<HolderRow> rows =
      holder_rows(request.recording(), request.stacks, request.selection);
  Numbering frames;
  JsonStream json{output};
  json.member("$schema", "https://www.speedscope.app/file-format-schema.json");
  json.member("name", printable(request.recording().path().string()));
  json.member("exporter", "oomrec " OOMREC_VERSION);
  json.member("activeProfileIndex", request.at == recording::At::peak ? 1 : 0);
  json.begin_array("profiles");
  for (const ProfileKind& profile : kProfiles)
    json.row(profile_json(profile, rows, request.stacks, frames));
  json.end_array();
  Json list = Json::array();
  for (const recording::LocationId id : frames.ids())
    list.push_back(frame_json(request.locations(), id));
  json.member("shared", {{"frames", std::move(list)}});
  json.end();
}

}  // namespace oomrec::tools::views
