// `oomrec attach PID`: records a process that is already running, until it ends, for some time, or
// until `--detach`.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "common/system/files.h"
#include "tools/base/arguments.h"
#include "tools/base/json.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/store/writing.h"
#include "tools/commands/attach_settings.h"
#include "tools/commands/commands.h"
#include "tools/commands/object_table.h"
#include "tools/processes/attach/object_counts.h"
#include "tools/processes/attach/session.h"
#include "tools/recording/live/processes.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kAttachExamples =
    "  oomrec attach 4711                    record until it ends; then `oomrec top 4711`\n"
    "  oomrec attach --mode exact 4711       every event, not a sample\n"
    "  oomrec attach --duration 60s 4711     record for a minute, and write a bundle\n"
    "  oomrec attach --objects 4711          also list the Python objects that it has, by type\n"
    "  oomrec attach --detach 4711           end the recording; the process goes on\n"
    "\n"
    "It needs the right to trace the process: its user's where kernel.yama.ptrace_scope is 0, "
    "else root,\nor CAP_SYS_PTRACE in a container. Exit code: 0 done, 1 not attached to "
    "(--detach), "
    "2 it cannot be\nattached to.\n";

pid_t pid_of(const std::string& word) {
  if (const auto pid = recording::parse_pid(word)) return *pid;
  if (word.empty())
    throw Error{Exit::bad_input, "no process was given", "Give its pid: oomrec attach 4711"};
  // What pgrep would be asked for must be a name.
  const bool is_number = word.find_first_not_of("-+.0123456789") == std::string::npos;
  throw Error{Exit::bad_input, fmt::format("'{}' is not a pid", printable(word)),
              is_number
                  ? "`ps` lists them."
                  : fmt::format("Give the number: oomrec attach $(pgrep -o {})", printable(word))};
}

// "60s", "5m", "1.5h", "90"; 0: not a time.
double seconds_of(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string_view unit = end;
  const double seconds = unit.empty() || unit == "s" ? number
                         : unit == "m"               ? number * 60
                         : unit == "h"               ? number * 3600
                                                     : 0;
  constexpr double kMost = 1e9;
  return end == text.c_str() || !(seconds > 0 && seconds < kMost) ? 0 : seconds;
}

// `directory`: empty: the process's own.
std::string write_bundle(pid_t pid, const std::string& directory) {
  recording::Recording recording{recording::require_live_process(pid).recording->path()};
  recording.enter_look(pid);
  bundle::Cause cause;
  cause.trigger = Trigger::request;
  cause.reason = "the end of `oomrec attach --duration`";
  const bundles::WriteResult written = bundles::write_bundle(
      recording, cause,
      directory.empty() ? recording::bundle_directory(pid, recording) : directory);
  if (written.bundle.empty())
    throw Error{Exit::bad_input, written.problem, "Give another directory: --dump-dir DIR"};
  return written.bundle.string();
}

// False: the process has ended before. A signal to this command ends the wait, and is kept.
bool wait_for(pid_t pid, double seconds) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const std::uint64_t start = system::start_ticks(pid);
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  const timespec step{0, 100'000'000};
  while (std::chrono::steady_clock::now() < until) {
    if (system::start_ticks(pid) != start) return false;
    if (sigtimedwait(&signals, nullptr, &step) > 0) break;
  }
  return true;
}

using Objects = std::optional<recording::ObjectCounts>;

// `bundle`: empty if none was written.
int report(pid_t pid, const processes::Attached& done, const std::string& bundle,
           const Objects& objects, bool json, const std::string& text) {
  if (json) {
    print_json({{"schema_version", 1},
                {"pid", pid},
                {"thread", done.thread},
                {"paused_ns", done.paused_ns},
                {"bundle", bundle.empty() ? Json() : Json(bundle)},
                {"objects", objects ? objects_json(*objects) : Json()}});
  } else {
    fmt::print("{}\n", text);
    if (objects) print_objects(*objects);
  }
  return code(Exit::shown);
}

// What was given of that which only a new recording has; nullptr: nothing.
const char* option_of_a_recording(const Arguments& arguments) {
  for (const char* const option : {"--mode", "--limit", "--dump-dir", "--duration", "--objects"})
    if (arguments.given(option)) return option;
  return nullptr;
}

int detach(pid_t pid, bool json) {
  return report(pid, processes::detach_from(pid), "", std::nullopt, json,
                fmt::format("the recording of process {} has ended; the process goes on", pid));
}

// The process is recorded, with them or without.
Objects count_objects(pid_t pid) {
  try {
    return processes::count_objects(pid);
  } catch (const Error& error) {
    write_stderr(fmt::format("oomrec attach: {}\n  {}\n", error.what(), error.what_to_do()));
    return std::nullopt;
  }
}

int record_for(pid_t pid, const processes::Attached& attached, const Objects& objects,
               double seconds, const std::string& directory, bool json) {
  if (!wait_for(pid, seconds)) {
    throw Error{Exit::nothing_found, fmt::format("process {} ended meanwhile", pid),
                "`oomrec recover` makes a bundle of its recording, if memory was the reason."};
  }
  const std::string bundle = write_bundle(pid, directory);
  processes::detach_from(pid);
  return report(pid, attached, bundle, objects, json, printable(bundle));
}

}  // namespace

int attach_command(const Words& words) {
  Arguments arguments{
      "attach", "[OPTIONS] PID",
      "Records a process that is already running: loads the recorder into it, and observes what it "
      "allocates from then on. What it held before is one holder, [before attaching]. One thread "
      "pauses for some milliseconds; the others go on.",
      kAttachExamples};
  std::string word;
  std::string mode;
  std::string limit;
  std::string directory;
  std::string duration;
  bool detaches = false;
  bool counts_objects = false;
  bool json = false;
  arguments.positional("PID", word, "the process");
  arguments.option("--mode", "MODE", mode, "sampled, or exact: every event [sampled]",
                   {"sampled", "exact"});
  arguments.option("--limit", "SIZE", limit,
                   "refuse allocations beyond SIZE, which includes what it holds now");
  arguments.option("--dump-dir", "DIR", directory,
                   "where bundles go (oom_dumps in the process's working directory)");
  arguments.option("--duration", "TIME", duration,
                   "record for so long (60s, 5m, 1h), then write a bundle and detach");
  arguments.flag("--objects", counts_objects,
                 "also list the objects that Python's garbage collector tracks, by type");
  arguments.flag("--detach", detaches, "end the recording, and take the recorder out of its calls");
  arguments.flag(
      "--json", json,
      "print {\"schema_version\", \"pid\", \"thread\", \"paused_ns\", \"bundle\", \"objects\"}");
  if (!arguments.parse(words)) return code(Exit::shown);

  const pid_t pid = pid_of(word);
  if (const char* const option = detaches ? option_of_a_recording(arguments) : nullptr)
    throw Error{Exit::bad_input, fmt::format("--detach ends a recording, {} begins one", option),
                "Give one of the two."};
  if (detaches) return detach(pid, json);
  if (!mode.empty() && mode != "sampled" && mode != "exact")
    throw invalid_value("--mode", mode, "Use sampled or exact.");
  const double seconds = duration.empty() ? 0 : seconds_of(duration);
  if (!duration.empty() && seconds == 0)
    throw invalid_value("--duration", duration, "Use a time such as 60s, 5m or 1h.");
  if (!directory.empty())
    directory = std::filesystem::absolute(directory).lexically_normal().string();
  processes::Settings flags;
  const auto add = [&](const char* variable, const std::string& value) {
    if (!value.empty()) flags.emplace_back(variable, value);
  };
  add("OOMREC_MODE", mode);
  add("OOMREC_LIMIT", limit);
  add("OOMREC_DUMP_DIR", directory);
  const processes::Attached done = attach_with_settings(pid, flags);
  if (!done.gpu_problem.empty())
    write_stderr(fmt::format("oomrec attach: the GPU memory of process {} is not recorded: {}\n",
                             pid, done.gpu_problem));
  const Objects objects = counts_objects ? count_objects(pid) : std::nullopt;
  if (seconds != 0) return record_for(pid, done, objects, seconds, directory, json);
  return report(pid, done, "", objects, json,
                fmt::format("process {0} is recorded now: oomrec top {0} (thread {1} paused for "
                            "{2:.1f} ms)",
                            pid, done.thread, static_cast<double>(done.paused_ns) / 1e6));
}

}  // namespace oomrec::tools::commands
