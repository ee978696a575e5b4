// `oomrec top`: who holds the memory of a running process, now.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "tools/arguments.h"
#include "tools/bundles/source.h"
#include "tools/commands.h"
#include "tools/screen/columns.h"
#include "tools/text.h"
#include "tools/top/choice_options.h"
#include "tools/top/top_json.h"
#include "tools/top/top_view.h"

namespace oomrec::tools {
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

struct TopOptions : ChoiceOptions {
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
    ChoiceOptions::add_to(arguments);
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
LiveProcess process_of(const std::string& word,
                       const std::shared_ptr<const CacheDirectory>& cache) {
  if (!is_here(word)) return find_live_process(word);
  Source source = open_source(word, cache);
  LiveProcess process;
  process.pid = source.recording->header().pid;
  process.start_ticks = source.recording->header().start_ticks;
  process.ended = source.is_job() ? std::string{"is a job's, merged"}
                                  : "is told by a bundle: " + source.outcome();
  process.names =
      source.bundle.empty() ? StoredSymbols{} : StoredSymbols::load(source.bundle / "symbols.json");
  process.recording = std::move(source.recording);
  return process;
}

void print_snapshot(TopView& view, const TopOptions& options) {
  const Scene scene = view.scene(options.top, terminal_speaks_utf8());
  if (options.json && options.count == 1) {
    print_json(top_json(scene));
  } else if (options.json) {
    fmt::print("{}\n", json_text(top_json(scene)));
  } else {
    fmt::print(
        "{}", as_text(snapshot_of(scene, kColumns), Terminal{STDOUT_FILENO}, kColumns, scene.utf8));
  }
  std::fflush(stdout);
}

void print_snapshots(TopView& view, const TopOptions& options, Clock::duration interval) {
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

void show_on_screen(TopView& view, Clock::duration interval) {
  Screen screen;
  screen.draw({Line{" looking up the names of stacks …"}});
  auto next_look = Clock::now() + interval;
  while (true) {
    screen.draw(view.picture(terminal_size(), screen.utf8()));
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_look - Clock::now());
    const Key key = screen.key(std::max(0, static_cast<int>(left.count())));
    if (Clock::now() >= next_look) {
      view.look();
      next_look = Clock::now() + interval;
    }
    if (key == Key::suspend) {
      screen.suspend();
    } else if (key == Key::end_of_input || !view.key(key)) {
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
      options.once || options.json || arguments.given("-n") || !is_screen_possible();
  const auto cache = options.no_cache ? nullptr : CacheDirectory::of_user();
  TopView view{process_of(options.process, cache), cache, options.choice()};
  if (printed)
    print_snapshots(view, options, interval);
  else
    show_on_screen(view, interval);
  if (!printed && view.ended())
    fmt::print("process {} {}\n", view.session().process().pid, view.session().ending());
  return code(Exit::shown);
}

}  // namespace oomrec::tools
