#include "tools/views/top/top_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "tools/base/json.h"
#include "tools/base/terminal.h"
#include "tools/views/screen/columns.h"
#include "tools/views/screen/screen.h"
#include "tools/views/top/top_json.h"

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

}  // namespace oomrec::tools::views
