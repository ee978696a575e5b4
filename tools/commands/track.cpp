// `oomrec track`: samples the memory of a process or of the machine from outside, until the process
// ends or a signal stops it.
#include <fmt/format.h>

#include <optional>

#include "tools/base/arguments.h"
#include "tools/base/terminal.h"
#include "tools/commands/commands.h"
#include "tools/processes/observe/observed.h"
#include "tools/service/track/tracker.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kTrackExamples =
    "  oomrec track train.py --output events.json     a recorded process by its program\n"
    "  oomrec track 4711 --duration 60 --output events.csv --format csv\n"
    "  oomrec track --oom-flight-recorder --warning-threshold 70 --critical-threshold 90\n"
    "  oomrec analyze events.json                     analyze the events\n"
    "\n"
    "Percentages are of the nearest limit: --limit, the cgroup, RLIMIT_AS, RAM; on a GPU its\n"
    "memory and --limit-gpu. Ctrl-C stops it; the file is valid at any moment.\n";

struct TrackOptions {
  std::string process, device, output, format = "json", job_id;
  double duration_s = 0, interval_s = 0.1;
  bool watchdog = false, flight_recorder = false;
  unsigned buffer_size = 0, rank = 0, local_rank = 0, world_size = 0;
  service::Thresholds thresholds;
  service::FlightRecorderOptions recorder;

  void add_to(Arguments& arguments) {
    arguments.positional("PID|PROGRAM", process,
                         "a process (default: your newest recorded one, else the machine)");
    arguments.option("--device", "DEVICE", device, "a GPU by number (0, cuda:0), or the host (cpu)",
                     {"cpu", "0"});
    arguments.option("--duration", "SECONDS", duration_s, "how long (until it ends)");
    arguments.option("--interval", "SECONDS", interval_s, "time between two samples (0.1)");
    arguments.option("--output", "FILE", output, "write TelemetryEvent v2 to FILE; -: stdout");
    arguments.choice("--format", "FORMAT", format, {"csv", "json"}, "format of the events (json)");
    arguments.option("--warning-threshold", "PERCENT", thresholds.warning_percent,
                     "warn from this share of the limit on (80)");
    arguments.option("--critical-threshold", "PERCENT", thresholds.critical_percent,
                     "critical from this share of the limit on (95)");
    arguments.flag("--watchdog", watchdog,
                   "from 90 % on, report what holds the memory and what may help, at most every 30 "
                   "s. It frees nothing: it cannot free another process's memory");
    arguments.flag("--oom-flight-recorder", flight_recorder,
                   "at critical, write a bundle of the process, which must be recorded");
    arguments.option("--oom-dump-dir", "DIR", recorder.directory, "where bundles go (oom_dumps)");
    arguments.option("--oom-buffer-size", "N", buffer_size, "events to keep for a bundle (10000)");
    arguments.option("--oom-max-dumps", "N", recorder.max_dumps, "bundles to keep (5; 0: all)");
    arguments.option("--oom-max-total-mb", "MB", recorder.max_total_mb,
                     "MiB of bundles to keep (256; 0: all)");
    arguments.option("--job-id", "ID", job_id,
                     "id of the distributed job (TORCHELASTIC_RUN_ID, …)");
    arguments.option("--rank", "N", rank, "rank of the process in the job (RANK, …)");
    arguments.option("--local-rank", "N", local_rank, "its rank on this machine (LOCAL_RANK, …)");
    arguments.option("--world-size", "N", world_size,
                     "number of processes in the job (WORLD_SIZE, …)");
  }

  void check() const {
    if (thresholds.warning_percent > thresholds.critical_percent)
      throw Error{Exit::bad_input,
                  fmt::format("--warning-threshold {} is above --critical-threshold {}",
                              thresholds.warning_percent, thresholds.critical_percent),
                  "Give a smaller --warning-threshold."};
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
    return formats::with_overrides(
        formats::rank_of(pid > 0 ? formats::variables_of_process(pid) : formats::own_variables()),
        given);
  }
};

// Who chose the process.
enum class ChosenBy { user, by_default };

// Whether there is the recording that `option` needs. Without it, throws Error if the user named
// the process. Otherwise only reports it, so that a script that always gives the option can track
// the machine.
bool has_recording_for(const char* option, const processes::Observed& observed,
                       ChosenBy chosen_by) {
  if (observed.recording() != nullptr) return true;
  const std::string problem =
      fmt::format("{} needs a recorded process, and {} is not recorded", option, observed.title());
  constexpr const char* kWhatToDo = "Start it with the recorder: oomrec run -- PROGRAM";
  if (chosen_by == ChosenBy::user) throw Error{Exit::bad_input, problem, kWhatToDo};
  write_stderr(fmt::format("oomrec track: {}; continuing without it\n  {}\n", problem, kWhatToDo));
  return false;
}

}  // namespace

int track_command(const Words& words) {
  Arguments arguments{
      "track", "[OPTIONS] [PID|PROGRAM]",
      "Samples the memory of a process from outside: writes TelemetryEvent v2 events to a file, "
      "alerts when it nears a limit, grows by 100 MiB at once or reserves much that it does not "
      "use, and writes bundles on request. It sends the process no signal.",
      kTrackExamples};
  TrackOptions options;
  options.add_to(arguments);
  if (!arguments.parse(words)) return code(Exit::shown);
  options.check();
  if (options.buffer_size != 0) options.recorder.buffer_events = options.buffer_size;

  const std::unique_ptr<processes::Observed> observed = options.observed();
  const formats::RankTags rank = options.rank_of_process(arguments, observed->pid());
  const ChosenBy chosen_by = options.process.empty() ? ChosenBy::by_default : ChosenBy::user;
  const bool flight_recorder =
      options.flight_recorder && has_recording_for("--oom-flight-recorder", *observed, chosen_by);
  const bool watchdog = options.watchdog && has_recording_for("--watchdog", *observed, chosen_by);

  service::TrackingOptions tracking;
  tracking.thresholds = options.thresholds;
  tracking.rank = rank;
  tracking.interval_s = options.interval_s;
  if (arguments.given("--duration")) tracking.duration_s = options.duration_s;
  tracking.output = options.output;
  if (!options.output.empty() || arguments.given("--format")) tracking.format = options.format;
  if (flight_recorder) tracking.recorder = options.recorder;
  tracking.watchdog = watchdog;
  service::track(*observed, tracking);
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands
