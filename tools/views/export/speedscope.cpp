// speedscope's file format (https://www.speedscope.app/file-format-schema.json): one profile each
// of what is held at the end, was held at the peak, and was allocated ever.
#include <fmt/format.h>

#include "tools/base/text.h"
#include "tools/views/export/format.h"
#include "tools/views/export/json_stream.h"
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
    const std::vector<recording::PlaceId> places = frames_of(stacks, row.stack);
    Json sample = Json::array();
    for (auto place = places.rbegin(); place != places.rend(); ++place)
      sample.push_back(frames(*place));
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

// What is not known has no key in this format.
Json frame_json(const recording::Places& places, recording::PlaceId id) {
  const recording::Place& place = places[id];
  Json frame{{"name", frame_name(places, id)}};
  if (!place.file.empty()) frame["file"] = printable(place.file);
  if (place.line != 0) frame["line"] = place.line;
  return frame;
}

}  // namespace

void write_speedscope(const Exported& exported, Output& output) {
  const std::vector<HolderRow> rows =
      holder_rows(exported.recording(), exported.stacks, exported.selection);
  Numbering frames;
  JsonStream json{output};
  json.member("$schema", "https://www.speedscope.app/file-format-schema.json");
  json.member("name", printable(exported.recording().path().string()));
  json.member("exporter", "oomrec " OOMREC_VERSION);
  json.member("activeProfileIndex", 0);
  json.begin_array("profiles");
  for (const ProfileKind& profile : kProfiles)
    json.row(profile_json(profile, rows, exported.stacks, frames));
  json.end_array();
  Json list = Json::array();
  for (const recording::PlaceId id : frames.ids())
    list.push_back(frame_json(exported.places(), id));
  json.member("shared", {{"frames", std::move(list)}});
  json.end();
}

}  // namespace oomrec::tools::views
