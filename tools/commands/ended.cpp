// `oomrec ended PID`: enters in a process' recording why it ends, by somebody who knows.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <vector>

#include "tools/base/arguments.h"
#include "tools/base/json.h"
#include "tools/base/text.h"
#include "tools/bundles/recover/completion.h"
#include "tools/bundles/recover/sessions.h"
#include "tools/bundles/store/bundles.h"
#include "tools/commands/commands.h"
#include "tools/recording/live/session.h"

namespace oomrec::tools::commands {

namespace fs = std::filesystem;

namespace {

constexpr const char* kEndedExamples =
    "  oomrec ended 4711 --by Ray --text \"used 3.1 GiB of 3.0 GiB\"; kill 4711\n"
    "  oomrec ended 4711 --by \"the autoscaler\" --reason other --text \"the node is drained\"\n"
    "  oomrec ended --session-dir /dev/shm/job.17 --by Slurm --text \"exceeded memory limit\"\n";

using Sessions = std::vector<bundles::Session>;

std::int32_t pid_in(const std::string& word) {
  if (const auto pid = parse_number<std::int32_t>(word)) return *pid;
  throw Error{Exit::bad_input, "no process was given",
              "Give the pid of a recorded process, as it sees it itself: oomrec ended 4711 --by "
              "Ray"};
}

void enter_in_recordings(const Sessions& sessions, const recording::Information& information) {
  for (const bundles::Session& session : sessions) {
    if (recording::enter_information(session.path, information)) continue;
    throw Error{Exit::bad_input,
                fmt::format("the recording of process {} cannot be changed", session.pid),
                "Run it as the user of the process."};
  }
}

fs::path normalized(const fs::path& directory) {
  return (directory / "").lexically_normal().parent_path();
}

// Of a running process, or of one that has ended and has no bundle yet.
Sessions session_of(std::int32_t pid) {
  const Sessions sessions = bundles::sessions_of(bundles::dump_directories());
  const auto youngest =
      std::ranges::find_if(sessions, [&](const auto& session) { return session.pid == pid; });
  return youngest != sessions.end() ? Sessions{*youngest} : Sessions{};
}

// In the bundles that `oomrec watch` has made of ends meanwhile: of each process the newest that
// has its end. Returns how many.
std::size_t enter_in_bundles(const recording::Information& information,
                             const std::function<bool(const bundles::BundleSummary&)>& is_meant) {
  const auto enter = [&](session::EndLevels& levels) {
    recording::enter_information(levels, information);
  };
  std::set<std::uint64_t> changed;
  for (const auto& bundle : bundles::bundles_in(bundles::dump_directories()))
    if (!changed.contains(bundle.pid) && is_meant(bundle) &&
        bundles::change_evidence(bundle.path, enter))
      changed.insert(bundle.pid);
  return changed.size();
}

void enter_for_process(std::int32_t pid, const recording::Information& information) {
  const Sessions sessions = session_of(pid);
  enter_in_recordings(sessions, information);
  if (!sessions.empty()) return;
  const auto is_its = [pid](const auto& bundle) {
    return bundle.pid == static_cast<std::uint64_t>(pid);
  };
  if (enter_in_bundles(information, is_its) != 0) return;
  throw Error{Exit::nothing_found,
              fmt::format("process {} has neither a recording nor a bundle of its end", pid),
              "It must have run with oomrec, and have ended within ten minutes. For recordings in "
              "another directory, set OOMREC_SESSION_DIR=DIR; for bundles, OOMREC_DUMP_DIR=DIR."};
}

// Whether the bundle's process kept its recording below this --session-dir.
bool is_recorded_in(const fs::path& bundle, const fs::path& directory) {
  const auto processes = bundles::read_file<bundles::Processes>(bundle);
  return fs::path{processes.session_directory}.parent_path() == directory;
}

// Of dead processes: who is alive there was not ended.
void enter_for_job(const std::string& name, const recording::Information& information) {
  const fs::path directory = normalized(fs::absolute(name));
  Sessions sessions = bundles::sessions_of({}, directory);
  std::erase_if(sessions, [&](const bundles::Session& session) {
    return session.alive || session.path.parent_path().parent_path() != directory;
  });
  enter_in_recordings(sessions, information);
  const std::size_t changed = enter_in_bundles(
      information, [&](const auto& bundle) { return is_recorded_in(bundle.path, directory); });
  if (!sessions.empty() || changed != 0) return;
  throw Error{Exit::nothing_found,
              fmt::format("no dead process left a recording in {}, or a bundle", printable(name)),
              "Give the OOMREC_SESSION_DIR of the processes, within ten minutes of their end."};
}

}  // namespace

int ended_command(const Words& words) {
  Arguments arguments{"ended", "[OPTIONS] [PID]",
                      "Enters in a process's recording why it ends, for those who end it and know: "
                      "schedulers, supervisors, their plugins. Call it before the signal, or after "
                      "it: a bundle of the end that exists already is changed. The verdict on a "
                      "SIGTERM or SIGKILL, or on an exit within "
                      "two minutes, is then user_space_oom_kill (proven), or killed_externally if "
                      "the reason is another one.",
                      kEndedExamples};
  std::string word;
  recording::Information information;
  std::string reason = "memory";
  std::string directory;
  arguments.positional("PID", word, "the process");
  arguments.option("--session-dir", "DIR", directory,
                   "instead of PID: every dead process that was recorded with this --session-dir, "
                   "such as a job's");
  arguments.option("--by", "NAME", information.informant, "who ends it");
  arguments.choice("--reason", "REASON", reason, {"memory", "other"}, "why it ends (memory)");
  arguments.option("--text", "TEXT", information.text, "the reason in its own words, as evidence");
  if (!arguments.parse(words)) return code(Exit::shown);
  if (information.informant.empty()) {
    throw Error{Exit::bad_input, "who ends it is missing",
                "Give a name: oomrec ended 4711 --by Ray"};
  }
  information.is_memory = reason == "memory";
  directory.empty() ? enter_for_process(pid_in(word), information)
                    : enter_for_job(directory, information);
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands
