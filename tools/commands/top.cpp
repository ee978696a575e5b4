// `oomrec top`: who holds the memory of a running process, now.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "tools/base/arguments.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/open.h"
#include "tools/commands/commands.h"
#include "tools/views/screen/columns.h"
#include "tools/views/top/choice_options.h"
#include "tools/views/top/top_json.h"
#include "tools/views/top/top_view.h"

namespace oomrec::tools::commands {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kExamples =
    "  oomrec top                        the youngest recorded process of yours\n"
    "  oomrec top 4711                   a process by its number; by its program: train.py\n"
    "  oomrec top oom_dumps              a job's ranks, or a bundle: as of its end; r chooses a "
    "rank\n"
    "  oomrec top --once --by function   printed once, as where stdout is no terminal\n"
    "  oomrec top -n 0 --interval 10 --json train.py | jq .held_bytes\n"
    "\n"
    "Exit code 0 also where the process has ended meanwhile: the last line says how.\n";

constexpr double kShortestInterval_s = 0.1;

struct TopOptions : views::ChoiceOptions {
  std::string process;
  bool once = false;
  bool json = false;
  bool no_cache = false;
  unsigned count = 1;
  unsigned top = 20;
  double interval_s = 0.5;

  void add_to(Arguments& arguments) {
    arguments.positional("PID|PROGRAM", process,
                         "a recorded process, by number or name; without it the youngest of yours; "
                         "or a bundle's directory, also of a job");
    views::ChoiceOptions::add_to(arguments);
    arguments.option("--interval", "SECONDS", interval_s, "time between two looks (0.5)");
    arguments.flag("--once", once, "print once, and end");
    arguments.option("-n", "COUNT", count,
                     "without a screen: print so many times; 0: until the process ends (1)");
    arguments.option("--top", "N", top, "rows that are printed (20)");
    arguments.flag("--json", json, "print JSON (docs/commands/top.md); a line each time with -n");
    arguments.flag("--no-cache", no_cache,
                   "look for every name anew, and keep none (~/.cache/oomrec)");
  }
};

bool is_here(const std::string& word) {
  std::error_code error;
  return word.find('/') != std::string::npos || std::filesystem::is_directory(word, error);
}

// A bundle is looked at like a process that has ended.
recording::LiveProcess process_of(const std::string& word,
                                  const std::shared_ptr<const recording::CacheDirectory>& cache) {
  if (!is_here(word)) return recording::find_live_process(word);
  bundles::Source source = bundles::open_source(word, cache);
  recording::LiveProcess process;
  process.pid = source.recording->header().pid;
  process.start_ticks = source.recording->header().start_ticks;
  process.ended = source.is_job() ? std::string{"is a job's, merged"}
                                  : "is told by a bundle: " + source.outcome();
  process.names = source.bundle.empty()
                      ? recording::StoredSymbols{}
                      : recording::StoredSymbols::load(source.bundle / "symbols.json");
  process.recording = std::move(source.recording);
  return process;
}

void print_snapshot(views::TopView& view, const TopOptions& options) {
  const views::Scene scene = view.scene(options.top, views::terminal_speaks_utf8());
  if (options.json && options.count == 1) {
    print_json(views::top_json(scene));
  } else if (options.json) {
    fmt::print("{}\n", json_text(views::top_json(scene)));
  } else {
    fmt::print("{}", views::as_text(views::snapshot_of(scene, kColumns), Terminal{STDOUT_FILENO},
                                    kColumns, scene.utf8));
  }
  std::fflush(stdout);
}

void print_snapshots(views::TopView& view, const TopOptions& options, Clock::duration interval) {
  for (unsigned printed = 1;; ++printed) {
    print_snapshot(view, options);
    if (printed == options.count || view.ended()) break;
    std::this_thread::sleep_for(interval);
    view.look();
    if (!options.json) fmt::print("\n");
  }
  if (view.ended() && !options.json)
    fmt::print("process {} {}\n", view.session().process().pid, view.session().ending());
}

void show_on_screen(views::TopView& view, Clock::duration interval) {
  views::Screen screen;
  screen.draw({views::Line{" looking up the names of stacks …"}});
  auto next_look = Clock::now() + interval;
  while (true) {
    screen.draw(view.picture(views::terminal_size(), screen.utf8()));
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_look - Clock::now());
    const views::Key key = screen.key(std::max(0, static_cast<int>(left.count())));
    if (Clock::now() >= next_look) {
      view.look();
      next_look = Clock::now() + interval;
    }
    if (key == views::Key::suspend) {
      screen.suspend();
    } else if (key == views::Key::end_of_input || !view.key(key)) {
      return;
    }
  }
}

}  // namespace

int top_command(const Words& words) {
  Arguments arguments{"top", "[OPTIONS] [PID|PROGRAM]",
                      "The memory of a running process: what it holds now and over time, and the "
                      "stacks, functions and files that hold it. The recording is read from "
                      "outside: the process cannot notice. `?` shows the keys.",
                      kExamples};
  TopOptions options;
  options.add_to(arguments);
  if (!arguments.parse(words)) return code(Exit::shown);

  const auto interval = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::max(options.interval_s, kShortestInterval_s)));
  const bool printed =
      options.once || options.json || arguments.given("-n") || !views::is_screen_possible();
  const auto cache = options.no_cache ? nullptr : recording::CacheDirectory::of_user();
  views::TopView view{process_of(options.process, cache), cache, options.choice()};
  if (printed)
    print_snapshots(view, options, interval);
  else
    show_on_screen(view, interval);
  if (!printed && view.ended())
    fmt::print("process {} {}\n", view.session().process().pid, view.session().ending());
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands
