#include "tools/views/top/top_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "tools/base/json.h"
#include "tools/base/terminal.h"
#include "tools/recording/reading/devices.h"
#include "tools/recording/stack_text/stack_text.h"
#include "tools/sections/resident_memory.h"
#include "tools/views/plot/timeline.h"
#include "tools/views/screen/picture.h"
#include "tools/views/screen/screen.h"
#include "tools/views/top/figures.h"

namespace oomrec::tools::views {
namespace {

using Clock = std::chrono::steady_clock;

void print_snapshot(TopView& view, const PrintOptions& options) {
  const Scene scene = view.scene(options.rows, terminal_charset());
  switch (options.format) {
    case TopFormat::json:
      print_json(top_json(scene));
      break;
    case TopFormat::json_lines:
      fmt::print("{}\n", json_text(top_json(scene)));
      break;
    case TopFormat::text:
      fmt::print("{}", as_text(snapshot_of(scene, kColumns), Terminal{STDOUT_FILENO}, kColumns,
                               scene.charset));
  }
  std::fflush(stdout);
}

}  // namespace

void print_snapshots(TopView& view, const PrintOptions& options) {
  for (unsigned printed = 1;; ++printed) {
    print_snapshot(view, options);
    if (printed == options.count || view.ended()) return;
    std::this_thread::sleep_for(options.interval);
    view.refresh();
    if (options.format == TopFormat::text) fmt::print("\n");
  }
}

void show_on_screen(TopView& view, Clock::duration interval) {
  Screen screen;
  screen.draw({Line{" looking up the names of stacks …"}});
  auto next_refresh = Clock::now() + interval;
  while (true) {
    screen.draw(view.picture(terminal_size(), screen.charset()));
    const auto remaining =
        std::chrono::ceil<std::chrono::milliseconds>(next_refresh - Clock::now());
    const Key key = screen.key(std::max(0, static_cast<int>(remaining.count())));
    if (Clock::now() >= next_refresh) {
      view.refresh();
      next_refresh = Clock::now() + interval;
    }
    if (key == Key::suspend) {
      screen.suspend();
    } else if (key == Key::end_of_input || !view.key(key)) {
      return;
    }
  }
}

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
       sections::resident_memory_json(
           recording, session.ended() ? sections::Process::ended : sections::Process::runs)},
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
