#include "tools/processes/launch/exit_report.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <set>

#include "common/system/files.h"
#include "tools/base/log.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/open.h"
#include "tools/bundles/recover/completion.h"
#include "tools/bundles/recover/on_oom.h"
#include "tools/bundles/recover/orphans.h"
#include "tools/bundles/store/access.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/outcome.h"
#include "tools/bundles/store/own_file.h"
#include "tools/processes/launch/death_line.h"
#include "tools/processes/launch/failed_start.h"
#include "tools/processes/launch/other_users.h"
#include "tools/processes/launch/unrecorded_death.h"
#include "tools/processes/launch/unrecorded_kills.h"

namespace oomrec::tools::processes {
namespace {

namespace fs = std::filesystem;

// Directories of the program's recordings and bundles. `searched`: those that reading commands
// search for bundles in this environment.
struct Directories {
  std::vector<fs::path> dumps, searched;
  fs::path named_session;
};

// Not of an earlier process: a container's first processes have the same ids at each start.
std::vector<bundles::BundleSummary> bundles_since_start(const std::vector<fs::path>& directories,
                                                        const ProgramFacts& program) {
  constexpr std::uint64_t kSecond = 1'000'000'000;  // in which a bundle's time is given
  std::vector<bundles::BundleSummary> found = bundles::bundles_in(directories);
  std::erase_if(found, [&](const bundles::BundleSummary& bundle) {
    return time_of_text(bundle.created_at_utc) / kSecond < program.start_realtime_ns / kSecond;
  });
  return found;
}

std::vector<bundles::Session> sessions_since_start(const Directories& directories,
                                                   const ProgramFacts& program) {
  std::vector<bundles::Session> found =
      bundles::sessions_of(directories.dumps, directories.named_session);
  std::erase_if(found, [&](const bundles::Session& session) {
    return session.start_ticks < program.start_ticks;
  });
  return found;
}

// `Process`: anything with its pid and the time of its start.
template <class Process>
bool is_program(const Process& process, const ProgramFacts& program) {
  return static_cast<std::uint64_t>(process.pid) == static_cast<std::uint64_t>(program.pid) &&
         (process.start_ticks == program.start_ticks || program.start_ticks == 0);
}

// Not so of one without a readable recording, as GPU Memory Profiler writes.
bool is_bundle_of(const bundles::BundleSummary& bundle, const ProgramFacts& program) try {
  return bundle.pid == static_cast<std::uint64_t>(program.pid) &&
         is_program(recording::Recording{bundles::recording_in(bundle.path)}.header(), program);
} catch (const std::exception&) {
  return false;
}

void complete_bundles(const std::vector<fs::path>& directories, const ProgramFacts& program,
                      const deaths::DeathObservation& observed) {
  for (const bundles::BundleSummary& bundle : bundles::bundles_in(directories)) {
    if (!bundle.awaits_outcome || !is_bundle_of(bundle, program)) continue;
    const recording::Recording recording{bundles::recording_in(bundle.path)};
    const bool recent =
        bundles::realtime_now_ns() - time_of_text(bundle.created_at_utc) < deaths::kFollowsWithinNs;
    bundles::complete_bundle(
        bundle.path, recording, deaths::ending_of(recording.view(), observed),
        recent ? bundles::BundleEvent::led_to_end : bundles::BundleEvent::was_survived);
  }
}

// What this run calls its processes; empty if it is part of another run, which has named them.
std::string own_tree(const Settings& settings) {
  if (std::getenv(kProcessTreeVariable) != nullptr) return {};
  const auto named = std::find_if(settings.begin(), settings.end(), [](const auto& setting) {
    return setting.first == kProcessTreeVariable;
  });
  return named == settings.end() ? std::string{} : named->second;
}

bool is_of_tree(const bundles::Session& session, const std::string& name) try {
  if (name.empty() || session.alive || session.unfinished) return false;
  const recording::Recording recording{session.path};
  return recording.view().string(recording.header().process_tree) == name;
} catch (const std::exception&) {
  return false;  // not readable: recover() says so, if it is asked
}

// The program and its descendants: by the chain of their parents, and by the name of the run, as a
// process in the chain that has ended well has left no recording.
std::set<pid_t> process_tree_of(pid_t program, const std::vector<bundles::Session>& sessions,
                                const std::string& name) {
  std::set<pid_t> tree{program};
  for (const bundles::Session& session : sessions)
    if (is_of_tree(session, name)) tree.insert(session.pid);
  for (std::size_t before = 0; before != tree.size();) {
    before = tree.size();
    for (const bundles::Session& session : sessions)
      if (tree.contains(session.parent_pid)) tree.insert(session.pid);
  }
  return tree;
}

Directories directories_for(const Options& options) {
  return {bundles::dump_directories(options.dump_dir), bundles::dump_directories(),
          options.session_dir};
}

// The user's command for a kill gets the program's directories.
bundles::OnOomCommand on_oom_command(const Options& options) {
  return {options.on_oom_exec,
          {{"OOMREC_DUMP_DIR", options.dump_dir}, {"OOMREC_SESSION_DIR", options.session_dir}}};
}

// `oomrec show` opens the cause without a name, and the others by their paths.
void report_bundles(const std::vector<fs::path>& made, const Directories& directories) {
  if (made.empty()) return;
  const std::vector<bundles::BundleSummary> found = bundles::bundles_in(directories.searched);
  const fs::path cause = found.empty() ? fs::path{} : bundles::newest_cause(found).path;
  for (const fs::path& bundle : made) {
    std::error_code error;
    if (!fs::exists(bundle, error)) continue;  // later ones of the run were too many beside it
    const std::string path = printable(bundle.string());
    remark(fmt::format("bundle {}   read it with: oomrec show{}", path,
                       bundle == cause ? "" : " " + shell_word(path)));
  }
}

void run_on_oom(const fs::path& bundle, const Options& options) {
  if (options.on_oom_exec[0] != '\0' && bundles::needs_on_oom_command(bundle))
    bundles::run_on_oom(on_oom_command(options), bundle);
}

// Says what ended the process of this bundle, if it was lack of memory or another process.
void report_death(const fs::path& bundle) {
  const std::string line = death_line_of(bundles::open_recorded(bundle));
  if (!line.empty()) remark(line);
}

bool was_killed(const deaths::DeathObservation& observed) {
  return observed.wait_status && WIFSIGNALED(*observed.wait_status) &&
         WTERMSIG(*observed.wait_status) == SIGKILL;
}

// Says what ended the program if its recording, which is removed, was worth no bundle.
void report_kill(const recording::Recording& recording, const deaths::DeathObservation& observed) {
  const deaths::Ending ending = deaths::ending_of(recording.view(), observed);
  if (!ending.killed) return;  // the recording had ended before: it became another program
  remark(fmt::format("{}; it held {}, so there is no bundle", death_line_of(recording, ending),
                     size_text(recording.held_bytes())));
}

// Recovers the sessions of the program and of its descendants; reading commands recover others.
void recover_own(const Directories& directories, const std::vector<bundles::Session>& sessions,
                 const deaths::DeathObservation& observed, const Launched& launched) {
  const Options& options = launched.options;
  const std::set<pid_t> tree =
      process_tree_of(launched.facts.pid, sessions, own_tree(launched.settings));
  std::vector<fs::path> made;
  for (const bundles::Session& session : sessions) {
    if (session.alive || !tree.contains(session.pid)) continue;
    const bool is_own = is_program(session, launched.facts);
    deaths::DeathObservation of_session;
    of_session.kernel_log = observed.kernel_log;
    std::optional<recording::Recording> killed;  // stays readable when its file is removed
    if (is_own && !session.unfinished && !options.quiet && was_killed(observed))
      killed.emplace(session.path);
    const bundles::RecoveryResult recovered = bundles::recover(
        session, {.observed = is_own ? observed : of_session,
                  // Its parent knew, and has left no recording.
                  .unknown = is_own ? bundles::UnknownEnds::remove : bundles::UnknownEnds::leave,
                  .dump_directories = directories.dumps});
    if (recovered.has_bundle()) run_on_oom(recovered.bundle, options);
    if (options.quiet) continue;
    if (recovered.has_bundle()) report_death(recovered.bundle);
    if (killed && recovered.action == bundles::RecoveryAction::removed)
      report_kill(*killed, observed);
    if (!recovered.problem.empty()) remark(recovered.problem);
    if (recovered.action == bundles::RecoveryAction::made) made.push_back(recovered.bundle);
  }
  report_bundles(made, directories);
}

// The program, the one that it became by exec, or another in its cgroup has no recording.
void report_unrecorded_process(const Directories& directories, const ProgramFacts& facts,
                               const deaths::DeathObservation& observed, const Options& options) {
  const UnrecordedDeath death = report_unrecorded(facts, observed, options);
  if (!death.bundle.empty()) run_on_oom(death.bundle, options);
  if (options.quiet) return;
  for (const std::string& text : {death.line, death.problem})
    if (!text.empty()) remark(text);
  if (!death.bundle.empty()) report_bundles({death.bundle}, directories);
}

// Those with a session or a bundle. A session does not count if it is only that of a program that
// became another one by exec. Of the program itself exactly, as its death is reported in any case.
std::set<pid_t> recorded_processes(const std::vector<bundles::Session>& sessions,
                                   const std::vector<bundles::BundleSummary>& bundles,
                                   const ProgramFacts& program) {
  std::set<pid_t> recorded;
  const auto header = std::make_unique<session::Header>();
  for (const bundles::Session& session : sessions) {
    if (session.pid == program.pid && !is_program(session, program)) continue;
    // A descendant that ended well since then has removed its recording.
    if (session.unfinished || !bundles::OwnFile{session.path}.read_header(*header)) continue;
    if (header->state == static_cast<session::u32>(session::State::replaced)) continue;
    recorded.insert(session.pid);
    // The kernel's log may name the helper, which shares the memory.
    recorded.insert(header->helper_pid);
  }
  // The recording of a process that reported its own crash is gone.
  for (const bundles::BundleSummary& bundle : bundles) {
    const auto pid = static_cast<pid_t>(bundle.pid);
    if (pid != program.pid || is_bundle_of(bundle, program)) recorded.insert(pid);
  }
  return recorded;
}

// A bundle that the program has written itself. Empty if there is none.
fs::path own_bundle(const std::vector<bundles::BundleSummary>& bundles,
                    const ProgramFacts& program) {
  const auto own = std::find_if(bundles.begin(), bundles.end(),
                                [&](const auto& bundle) { return is_bundle_of(bundle, program); });
  return own == bundles.end() ? fs::path{} : own->path;
}

// `oomrec watch` may have been first.
void report_recovered_by_watch(const Directories& directories, const Launched& launched) {
  const Options& options = launched.options;
  for (const bundles::BundleSummary& bundle :
       bundles_since_start(directories.dumps, launched.facts)) {
    if (bundle.trigger != name_of(Trigger::killed) || !is_bundle_of(bundle, launched.facts))
      continue;
    if (bundles::is_own_bundle(bundle.path)) run_on_oom(bundle.path, options);
    if (options.quiet) continue;
    report_death(bundle.path);
    report_bundles({bundle.path}, directories);
  }
}

// Recovers and reports what this process may read of the run. Returns the processes that were
// recorded, if the program failed.
std::set<pid_t> report_recordings(const deaths::DeathObservation& observed,
                                  const Launched& launched) {
  const Directories directories = directories_for(launched.options);
  const std::vector<bundles::Session> sessions = sessions_since_start(directories, launched.facts);
  std::set<pid_t> recorded;
  if (observed.wait_status != 0)  // a success needs no explanation
    recorded = recorded_processes(sessions, bundles_since_start(directories.dumps, launched.facts),
                                  launched.facts);
  // Recordings first: they hold more than the bundles.
  recover_own(directories, sessions, observed, launched);
  complete_bundles(directories.dumps, launched.facts, observed);
  return recorded;
}

// Root may start programs that become other users before they execute what is recorded.
std::set<User> other_users(const Directories& directories, const Launched& launched) {
  if (geteuid() != 0) return {};
  std::vector<fs::path> bases = directories.dumps;
  bases.emplace_back(launched.options.session_dir);
  bases.emplace_back("/dev/shm");
  bases.emplace_back(system::g_roots.temporary);
  return users_who_recorded_since(launched.facts.start_realtime_ns, bases);
}

// Adds what they had recorded.
void report_as_other_users(const std::set<User>& users, std::set<pid_t>& recorded,
                           deaths::DeathObservation observed, const Launched& launched) {
  if (users.empty()) return;
  const system::File log = deaths::copy_of_kernel_log(observed.kernel_log);
  if (log.is_open()) observed.kernel_log = fmt::format("/proc/self/fd/{}", log.descriptor());
  for (const User& user : users)
    recorded.merge(as_user(user, [&] { return report_recordings(observed, launched); }));
}

// Reports a limit too low for the program to start, which its own message may not mention.
void report_failed_start(const std::vector<fs::path>& directories, const Ended& ended,
                         const Launched& launched) {
  const fs::path own = own_bundle(bundles_since_start(directories, launched.facts), launched.facts);
  const bool not_loaded = WIFEXITED(ended.wait_status) && WEXITSTATUS(ended.wait_status) == 127;
  std::string line;
  if (!own.empty()) {
    line = failed_start_of(bundles::open_source(own), launched.options);
  } else if (not_loaded) {
    line = failed_load_of(launched.path, launched.words, launched.settings);
  }
  if (!line.empty()) remark(line);
}

}  // namespace

void report_exit(const Ended& ended, const deaths::DeathObservation& observed,
                 const Launched& launched) noexcept try {
  const Options& options = launched.options;
  const Directories directories = directories_for(options);
  if (WIFSIGNALED(ended.wait_status)) report_recovered_by_watch(directories, launched);
  std::set<pid_t> recorded = report_recordings(observed, launched);
  report_as_other_users(other_users(directories, launched), recorded, observed, launched);
  if (WIFSIGNALED(ended.wait_status) && !recorded.contains(ended.pid))
    report_unrecorded_process(directories, launched.facts, observed, options);
  // As a shell does after its child was killed. A signal has its own explanation.
  if (WIFEXITED(ended.wait_status) && WEXITSTATUS(ended.wait_status) != 0) {
    recorded.insert(ended.pid);
    for (const UnrecordedKill& killed :
         unrecorded_kills(launched.facts, launched.descendants, recorded, observed))
      report_unrecorded_process(directories, killed.facts, killed.observed, options);
  }
  if (ended.wait_status != 0 && !options.quiet)
    report_failed_start(bundles::dump_directories(options.dump_dir), ended, launched);
} catch (const std::exception& error) {
  remark(error.what());
}

}  // namespace oomrec::tools::processes
