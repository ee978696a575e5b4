// `oomrec track`: watches the memory of a process, or of the machine, from outside, until it ends
// or is told to stop.
#include <fmt/format.h>

#include <optional>

#include "common/system/files.h"
#include "tools/base/arguments.h"
#include "tools/base/text.h"
#include "tools/commands/commands.h"
#include "tools/processes/observe/live_line.h"
#include "tools/processes/observe/ticker.h"
#include "tools/service/track/tracker.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kExamples =
    "  oomrec track train.py --output events.json     a recorded process by its program\n"
    "  oomrec track 4711 --duration 60 --output events.csv --format csv\n"
    "  oomrec track --oom-flight-recorder --warning-threshold 70 --critical-threshold 90\n"
    "  oomrec analyze events.json                     what the events say\n"
    "\n"
    "Percentages are of the nearest limit: --limit, the cgroup, RLIMIT_AS, RAM; on a GPU its\n"
    "memory and --limit-gpu. Ctrl-C ends it; the file is whole at any moment.\n";

struct TrackOptions {
  std::string process, device, output, format = "json", job_id;
  double duration_s = 0, interval_s = 0.1;
  bool watchdog = false, flight_recorder = false;
  unsigned buffer_size = 0, rank = 0, local_rank = 0, world_size = 0;
  service::Thresholds thresholds;
  service::FlightRecorderOptions recorder;

  void add_to(Arguments& arguments) {
    arguments.positional(
        "PID|PROGRAM", process,
        "a process; without it the youngest recorded one of yours, else the machine");
    arguments.option("--device", "DEVICE", device, "a GPU by number (0, cuda:0), or the host (cpu)",
                     {"cpu", "0"});
    arguments.option("--duration", "SECONDS", duration_s, "how long (until it ends)");
    arguments.option("--interval", "SECONDS", interval_s, "time between two looks (0.1)");
    arguments.option("--output", "FILE", output, "write TelemetryEvent v2 there; -: stdout");
    arguments.choice("--format", "FORMAT", format, {"csv", "json"}, "of the events (json)");
    arguments.option("--warning-threshold", "PERCENT", thresholds.warning_percent,
                     "warn from here on (80)");
    arguments.option("--critical-threshold", "PERCENT", thresholds.critical_percent,
                     "critical from here on (95)");
    arguments.flag(
        "--watchdog", watchdog,
        "from 90 % on say who holds the memory and what may help, at most every 30 s. It "
        "frees nothing: another process's memory cannot be given back from outside");
    arguments.flag("--oom-flight-recorder", flight_recorder,
                   "at critical, write a bundle of the process, which must be recorded");
    arguments.option("--oom-dump-dir", "DIR", recorder.directory, "where bundles go (oom_dumps)");
    arguments.option("--oom-buffer-size", "N", buffer_size,
                     "last events that go into a bundle (10000)");
    arguments.option("--oom-max-dumps", "N", recorder.max_dumps, "bundles that stay (5; 0: all)");
    arguments.option("--oom-max-total-mb", "MB", recorder.max_total_mb,
                     "MiB of bundles that stay (256; 0: all)");
    arguments.option("--job-id", "ID", job_id, "of a distributed job (TORCHELASTIC_RUN_ID, …)");
    arguments.option("--rank", "N", rank, "of the process in it (RANK, …)");
    arguments.option("--local-rank", "N", local_rank, "on its machine (LOCAL_RANK, …)");
    arguments.option("--world-size", "N", world_size, "processes of the job (WORLD_SIZE, …)");
  }

  void check() const {
    if (thresholds.warning_percent > thresholds.critical_percent)
      throw Error{Exit::bad_input,
                  fmt::format("--warning-threshold {} is above --critical-threshold {}",
                              thresholds.warning_percent, thresholds.critical_percent),
                  "A warning comes first: give a smaller number."};
  }

  std::unique_ptr<processes::Observed> observed() const {
    const processes::DeviceChoice choice = processes::DeviceChoice::of(device);
    if (!process.empty()) return processes::observe_process(process, choice);
    std::vector<recording::LiveProcess> recorded = recording::live_processes();
    return recorded.empty() ? processes::observe_machine(choice)
                            : processes::observe_recorded(std::move(recorded.front()), choice);
  }

  formats::RankTags rank_of_process(const Arguments& arguments, pid_t pid) const {
    formats::RankTags given;
    const auto take = [&](const char* name, unsigned value, std::optional<std::int64_t>& to) {
      if (arguments.given(name)) to = value;
    };
    if (arguments.given("--job-id")) given.job_id = job_id;
    take("--rank", rank, given.rank);
    take("--local-rank", local_rank, given.local_rank);
    take("--world-size", world_size, given.world_size);
    return formats::with_given(
        formats::rank_of(pid > 0 ? formats::variables_of_process(pid) : formats::own_variables()),
        given);
  }
};

// What only a recorded process can have is an error of the process that was named, and a note where
// none was: a script that always asks for it tracks the machine all the same.
void leave_out_without_recording(const processes::Observed& observed, bool is_named, bool& wanted,
                                 const char* option) {
  if (!wanted || observed.recording() != nullptr) return;
  const std::string problem =
      fmt::format("{} needs a recorded process, and {} is none", option, observed.title());
  constexpr const char* kWhatToDo = "Start it with the recorder: oomrec run -- PROGRAM";
  if (is_named) throw Error{Exit::bad_input, problem, kWhatToDo};
  fmt::print(stderr, "oomrec track: {}; tracked without it\n  {}\n", problem, kWhatToDo);
  wanted = false;
}

}  // namespace

int track_command(const Words& words) {
  Arguments arguments{
      "track", "[OPTIONS] [PID|PROGRAM]",
      "Watches the memory of a process from outside, look by look: events of TelemetryEvent v2 for "
      "a file, alerts when it nears a limit, grows by 100 MiB at once or reserves much that it "
      "does "
      "not use, and, where they are asked for, bundles. The process gets no signal.",
      kExamples};
  TrackOptions options;
  options.add_to(arguments);
  if (!arguments.parse(words)) return code(Exit::shown);
  options.check();
  if (options.buffer_size != 0) options.recorder.buffer_events = options.buffer_size;

  const std::unique_ptr<processes::Observed> observed = options.observed();
  const formats::RankTags rank = options.rank_of_process(arguments, observed->pid());
  const bool is_named = !options.process.empty();
  leave_out_without_recording(*observed, is_named, options.flight_recorder,
                              "--oom-flight-recorder");
  leave_out_without_recording(*observed, is_named, options.watchdog, "--watchdog");

  std::optional<formats::RecordFile> file;
  if (!options.output.empty() || arguments.given("--format"))
    file.emplace(options.output, options.format, formats::event_columns());
  std::FILE* const page = file && file->is_stdout() ? stderr : stdout;
  processes::LiveLine line;
  const auto tell = [&](const std::string& text) {
    line.clear();
    fmt::print(page, "{} {}\n", time_text(system::realtime_ns()), text);
    std::fflush(page);
  };
  service::TrackerParts parts{file ? &*file : nullptr, {}, {}, tell};
  if (options.flight_recorder) parts.recorder.emplace(options.recorder);
  if (options.watchdog) parts.watchdog.emplace();
  service::Tracker tracker{*observed, options.thresholds, rank, options.interval_s,
                           std::move(parts)};

  const auto duration =
      arguments.given("--duration") ? std::optional{options.duration_s} : std::nullopt;
  processes::Ticker ticker{options.interval_s, duration, observed->pid()};
  bool there = false;
  do {
    there = tracker.look();
    if (there) line.show(ticker.elapsed_s(), tracker.last());
  } while (there && ticker.next());
  line.clear();
  const std::string ending = there ? "" : fmt::format("it {}", observed->ending());
  tracker.stop(!there ? ending : ticker.told_to_stop() ? "told to stop" : "the time is over");
  fmt::print(page, "{}{}", tracker.summary(), there ? "" : fmt::format("  {}\n", ending));
  if (file && !file->is_stdout())
    fmt::print(page, "  {} in {}\n", plural(file->records(), "event", "events"),
               printable(options.output));
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands
