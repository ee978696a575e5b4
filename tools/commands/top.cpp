// `oomrec top`: live view of what holds a running process's memory.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>

#include "common/system/files.h"
#include "tools/base/arguments.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/open.h"
#include "tools/commands/attach_settings.h"
#include "tools/commands/commands.h"
#include "tools/views/screen/screen.h"
#include "tools/views/top/choice_options.h"
#include "tools/views/top/top_output.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kTopExamples =
    "  oomrec top                        your newest recorded process\n"
    "  oomrec top 4711                   a process by its pid, or by its program: train.py\n"
    "  oomrec top oom_dumps              a job's ranks, or a bundle, at its end; r chooses a "
    "rank\n"
    "  oomrec top --once --by function   printed once, as when stdout is not a terminal\n"
    "  oomrec top -n 0 --interval 10 --json train.py | jq .held_bytes\n"
    "\n"
    "Exit code 0 even if the process ends meanwhile: the last line says how.\n";

constexpr double kShortestInterval_s = 0.1;

struct TopOptions : views::ChoiceOptions {
  std::string process;
  bool attach = false;
  bool once = false;
  bool json = false;
  bool no_cache = false;
  unsigned count = 1;
  unsigned top = 20;
  double interval_s = 0.5;

  views::TopFormat format() const {
    if (!json) return views::TopFormat::text;
    return count == 1 ? views::TopFormat::json : views::TopFormat::json_lines;
  }

  void add_to(Arguments& arguments) {
    arguments.positional("PID|PROGRAM", process,
                         "a recorded process, by pid or program (default: your newest one), or a "
                         "bundle directory, also of a job");
    views::ChoiceOptions::add_to(arguments);
    arguments.option("--interval", "SECONDS", interval_s, "time between two samples (0.5)");
    arguments.flag("--attach", attach,
                   "if the process is not recorded, attach to it first (PID only)");
    arguments.flag("--once", once, "print once and exit");
    arguments.option("-n", "COUNT", count,
                     "print COUNT times, without a screen; 0: until the process ends (1)");
    arguments.option("--top", "N", top, "rows to print (20)");
    arguments.flag("--json", json,
                   "print JSON (docs/commands/top.md); with -n one line per sample");
    arguments.flag("--no-cache", no_cache, "do not use the cache of symbols (~/.cache/oomrec)");
  }
};

// Whether the user, at a terminal, wants it. Ctrl-C and a closed terminal are a no.
bool wants_to_attach(pid_t pid) {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1) return false;
  fmt::print("process {} is not recorded. Load the recorder into it (oomrec attach)? [y/N] ", pid);
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

void attach_if_not_recorded(const TopOptions& options) {
  const auto pid = recording::parse_pid(options.process);
  if (!pid && options.attach)
    throw Error{Exit::bad_input, "--attach needs a pid", "Give it: oomrec top --attach 4711"};
  if (!pid || recording::live_process(*pid) || system::start_ticks(*pid) == 0) return;
  if (options.attach || (!options.json && wants_to_attach(*pid))) attach_with_settings(*pid, {});
}

bool is_path(const std::string& word) {
  std::error_code error;
  return word.find('/') != std::string::npos || std::filesystem::is_directory(word, error);
}

// A bundle is shown as a process that has ended.
recording::LiveProcess process_of(const std::string& word,
                                  const std::shared_ptr<const recording::CacheDirectory>& cache) {
  if (!is_path(word)) return bundles::find_live_process(word);
  bundles::Source source = bundles::open_source(word, cache);
  recording::LiveProcess process;
  process.pid = source.recording->header().pid;
  process.start_ticks = source.recording->header().start_ticks;
  process.ending = source.is_job() ? std::string{"belongs to a merged job"}
                                   : "comes from a bundle; outcome: " + source.outcome();
  process.symbols = source.bundle.empty() ? recording::StoredSymbols{}
                                          : recording::StoredSymbols::load(source.bundle);
  process.recording = std::move(source.recording);
  return process;
}

}  // namespace

int top_command(const Words& words) {
  Arguments arguments{"top", "[OPTIONS] [PID|PROGRAM]",
                      "Shows the memory of a running process: what it holds now and over time, and "
                      "the stacks, functions and files that hold it. It reads the recording from "
                      "outside, without disturbing the process. `?` shows the keys.",
                      kTopExamples};
  TopOptions options;
  options.add_to(arguments);
  if (!arguments.parse(words)) return code(Exit::shown);
  if (options.json && !arguments.given("--frames"))
    options.frames = name_of(recording::kFramesNames, recording::Frames::both);

  attach_if_not_recorded(options);
  const auto interval = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(std::max(options.interval_s, kShortestInterval_s)));
  const bool printed =
      options.once || options.json || arguments.given("-n") || !views::is_screen_possible();
  const auto cache = options.no_cache ? nullptr : recording::CacheDirectory::of_user();
  views::TopView view{process_of(options.process, cache), cache, options.choice()};
  if (printed)
    views::print_snapshots(view, {options.format(), options.count, options.top, interval});
  else
    views::show_on_screen(view, interval);
  if (view.ended() && !options.json)
    fmt::print("process {} {}\n", view.session().process().pid, view.session().ending());
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands
