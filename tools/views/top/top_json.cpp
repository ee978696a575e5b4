#include "tools/views/top/top_json.h"

#include "tools/print/resident_memory.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/stack_text/stack_text.h"
#include "tools/views/plot/timeline_json.h"
#include "tools/views/top/figures.h"

namespace oomrec::tools::views {
namespace {

Json row_json(const Row& row, const Scene& scene) {
  const Names& names = scene.table.names();
  const recording::Locations& locations = names.locations();
  const By by = scene.choice.by;
  const recording::LocationId location = by == By::stack ? scene.table.paths()[row.path].subject
                                         : by == By::function ? names.location_of_function(row.key)
                                                              : 0;
  const std::string& file = by == By::file ? names.file(row.key) : locations[location].file;
  const bool line = by == By::stack && locations[location].line != 0;
  Json json = {
      {"function", text_or_null(locations[location].function)},
      {"file", text_or_null(file)},
      {"line", line ? Json(locations[location].line) : Json(nullptr)},
  };
  for (const Figure& figure : figures()) json[figure.key] = figure.json(row);
  json["resident_bytes"] = row.weight;
  json["stack"] = by == By::stack
                      ? recording::stack_json(scene.table.paths().locations(row.path), locations)
                      : Json(nullptr);
  return json;
}

}  // namespace

Json top_json(const Scene& scene) {
  const recording::LiveSession& session = scene.session;
  const recording::Recording& recording = session.recording();
  const Choice& choice = scene.choice;
  Json rows = Json::array();
  for (const Row& row : scene.rows.rows) rows.push_back(row_json(row, scene));
  const std::uint64_t elapsed_ms = session.elapsed_ns() / 1'000'000;
  return {
      {"schema_version", 1},
      {"pid", session.process().pid},
      {"arguments", recording.arguments()},
      {"mode", name_of(recording.mode_now())},
      {"estimated", recording.estimated()},
      {"elapsed_s", static_cast<double>(elapsed_ms) / 1000},
      {"ended", session.ended() ? Json(session.ending()) : Json(nullptr)},
      {"moment", moment_json(session.timeline().moments.back(), recording)},
      {"resident_memory",
       print::resident_memory_json(recording,
                                   session.ended() ? print::Process::ended : print::Process::runs)},
      {"limits", limits_json(session.timeline(), recording)},
      {"by", kByNames[static_cast<std::size_t>(choice.by)]},
      {"sort", kSortNames[static_cast<std::size_t>(choice.sort)]},
      {"frames", name_of(recording::kFramesNames, choice.frames)},
      {"space", choice.space ? Json(name_of(*choice.space)) : Json("all")},
      {"threads", choice.group ? Json(scene.holders.groups()[*choice.group]) : Json(nullptr)},
      {"search", text_or_null(choice.search)},
      {"held_bytes", scene.rows.held},
      {"row_count", scene.rows.matching},
      {"rows", rows},
  };
}

}  // namespace oomrec::tools::views
