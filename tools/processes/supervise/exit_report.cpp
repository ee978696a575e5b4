#include "tools/processes/supervise/exit_report.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "common/system/files.h"
#include "common/system/text.h"
#include "common/system/units.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/open.h"
#include "tools/bundles/recover/completion.h"
#include "tools/bundles/recover/on_oom.h"
#include "tools/bundles/recover/orphans.h"
#include "tools/bundles/store/access.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/outcome.h"
#include "tools/processes/supervise/death_line.h"
#include "tools/processes/supervise/failed_start.h"
#include "tools/processes/supervise/other_users.h"
#include "tools/processes/supervise/run_recordings.h"
#include "tools/processes/supervise/unrecorded_death.h"
#include "tools/processes/supervise/unrecorded_images.h"
#include "tools/processes/supervise/unrecorded_kills.h"

namespace oomrec::tools::processes {
namespace {

namespace fs = std::filesystem;

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

// Waits for the command, unless other deaths may have to be reported meanwhile.
void run_on_oom(const fs::path& bundle, const Options& options, bool is_program_running = false) {
  if (options.on_oom_exec[0] == '\0' || !bundles::needs_on_oom_command(bundle)) return;
  const bundles::OnOomCommand command = on_oom_command(options);
  is_program_running ? bundles::start_on_oom(command, bundle)
                     : bundles::run_on_oom(command, bundle);
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

// What is needed to report a dead process of the run.
struct Report {
  const Launched& launched;
  const Directories& directories;
  const std::set<pid_t>& told;  // processes whose death has been said already
  ReportProgress& progress;
};

// By which the kernel's line names the process: in the first pid namespace; 0: there is no line.
pid_t pid_in_kernel_line(const session::Death& death) {
  constexpr std::string_view kBeforePid = "Killed process ";
  const std::string_view line{death.kernel_line, sizeof death.kernel_line};
  const std::size_t at = line.find(kBeforePid);
  return at == line.npos
             ? 0
             : static_cast<pid_t>(system::number_in(line.substr(at + kBeforePid.size())));
}

enum class Dead : std::uint8_t { program, other, other_while_program_runs };

// Recovers the recording of a dead process, and says what ended it, once. Of hundreds beside the
// program only the first get a line each. Returns the bundle that was made, and is to be named.
std::optional<fs::path> report_one(const Report& report, const bundles::Session& session,
                                   bundles::RecoverOptions with, Dead dead) {
  const Options& options = report.launched.options;
  const bool is_told = report.told.contains(session.pid);
  const bool may_say = dead == Dead::program || is_told || report.progress.may_say();
  std::optional<recording::Recording> killed;  // stays readable when its file is removed
  if (dead == Dead::program && !session.unfinished && !options.quiet && was_killed(with.observed))
    killed.emplace(session.path);
  with.dump_directories = report.directories.dumps;
  with.before_bundle = [&](const bundles::DeadProcess& process) {
    report.progress.add_recorded(pid_in_kernel_line(process.ending.death()));
    if (may_say && !is_told && !options.quiet && process.ending.killed)
      report.progress.begin(session.pid, death_line_of(process.recording, process.ending));
  };
  const bundles::RecoveryResult recovered = bundles::recover(session, with);
  if (recovered.has_bundle())
    run_on_oom(recovered.bundle, options, dead == Dead::other_while_program_runs);
  const bool is_made = recovered.action == bundles::RecoveryAction::made;
  if (is_made) report.progress.made(recovered.bundle.native());
  if (options.quiet) return std::nullopt;
  if (recovered.has_bundle() && may_say && !is_told) report_death(recovered.bundle);
  report.progress.end();
  if (killed && recovered.action == bundles::RecoveryAction::removed)
    report_kill(*killed, with.observed);
  if (!recovered.problem.empty() && may_say) remark(recovered.problem);
  if (!is_made) return std::nullopt;
  if (!may_say) {
    report.progress.count(recovered.verdict.value_or(VerdictCode::unknown));
    return std::nullopt;
  }
  if (dead != Dead::program && !is_told) report.progress.said();
  return recovered.bundle;
}

// Recovers the sessions of the program and of its descendants; reading commands recover others.
void recover_own(const Report& report, const std::vector<bundles::Session>& sessions,
                 const deaths::DeathObservation& observed) {
  const ProgramFacts& program = report.launched.facts;
  const std::set<pid_t> tree = process_tree_of(program.pid, sessions, report.launched.settings);
  std::vector<fs::path> made;
  for (const bundles::Session& session : sessions) {
    if (session.alive || !tree.contains(session.pid)) continue;
    const bool is_own = is_program(session, program);
    bundles::RecoverOptions with;
    with.observed.kernel_log = observed.kernel_log;
    if (is_own) with.observed = observed;
    // The program's parent knew, and has left no recording.
    with.unknown = is_own ? bundles::UnknownEnds::remove : bundles::UnknownEnds::leave;
    if (const auto bundle = report_one(report, session, with, is_own ? Dead::program : Dead::other))
      made.push_back(*bundle);
  }
  report_bundles(made, report.directories);
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
                                  const Launched& launched, const std::set<pid_t>& told,
                                  ReportProgress& progress) {
  const Directories directories = directories_for(launched.options);
  const std::vector<bundles::Session> sessions = sessions_since_start(directories, launched.facts);
  std::set<pid_t> recorded;
  if (observed.wait_status != 0)  // a success needs no explanation
    recorded = recorded_processes(sessions, bundles_since_start(directories.dumps, launched.facts),
                                  launched.facts);
  // Recordings first: they hold more than the bundles.
  recover_own({launched, directories, told, progress}, sessions, observed);
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
                           deaths::DeathObservation observed, const Launched& launched,
                           const std::set<pid_t>& told, ReportProgress& progress) {
  if (users.empty()) return;
  const system::File log = deaths::copy_of_kernel_log(observed.kernel_log);
  if (log.is_open()) observed.kernel_log = fmt::format("/proc/self/fd/{}", log.descriptor());
  for (const User& user : users)
    recorded.merge(
        as_user(user, [&] { return report_recordings(observed, launched, told, progress); }));
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

// Whether a process that its parent has not waited for may be reported: what a kill or a crash is
// can be told from its signal. A parent that ends its workers by another one waits for them, too.
bool is_telling(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return false;
  const int signal = WTERMSIG(wait_status);
  return signal != SIGTERM && signal != SIGINT && signal != SIGHUP && signal != SIGPIPE;
}

// A process of the run whose death can be explained now, though the program runs on. A recording
// that was closed waits for the program's end: others may need it to be explained.
bool is_reportable(const bundles::Session& session, std::optional<int>& wait_status) {
  const auto header = std::make_unique<session::Header>();
  if (session.unfinished || !bundles::OwnFile{session.path}.read_header(*header) ||
      header->state != static_cast<session::u32>(session::State::running))
    return false;
  const bool is_visible = header->pid_namespace == system::pid_namespace();
  if (!is_visible || kill(session.pid, 0) != 0 ||
      system::start_ticks(session.pid) > session.start_ticks)
    return true;
  wait_status = deaths::status_of_zombie(session.pid, session.start_ticks);
  return wait_status && is_telling(*wait_status);
}

// Those of this user; with `chosen`, only these recordings.
void report_dead(const Launched& launched, const deaths::DeathObserver& observer,
                 const std::set<pid_t>& told, ReportProgress& progress,
                 const std::set<fs::path>* chosen = nullptr) {
  const Directories directories = directories_for(launched.options);
  const std::vector<bundles::Session> sessions = sessions_since_start(directories, launched.facts);
  const std::set<pid_t> tree = process_tree_of(launched.facts.pid, sessions, launched.settings);
  for (const bundles::Session& session : sessions) {
    if (session.alive || session.pid == launched.facts.pid || !tree.contains(session.pid) ||
        (chosen != nullptr && !chosen->contains(session.path)))
      continue;
    bundles::RecoverOptions with;
    with.observed = observer.of_other(session.pid);
    with.unknown = bundles::UnknownEnds::leave;
    if (!is_reportable(session, with.observed.wait_status)) continue;
    for (const pid_t pid : recorded_processes({session}, {}, launched.facts))
      progress.add_recorded(pid);
    if (const auto bundle = report_one({launched, directories, told, progress}, session, with,
                                       Dead::other_while_program_runs))
      report_bundles({*bundle}, directories);
  }
}

}  // namespace

ExitReports::ExitReports(const Launched& launched) : launched_(launched) {}

bool ExitReports::is_own(pid_t child, int wait_status) {
  if (child == 0 || child != process_.child()) return false;
  process_.reaped();
  end_report(wait_status == 0);
  return true;
}

// What the kernel killed a report for may be over soon: it is tried again, less and less often.
void ExitReports::end_report(bool is_complete) {
  ReportProgress& progress = process_.progress();
  progress.take_recorded(recorded_);
  failed_reports_ = is_complete ? 0 : std::min(failed_reports_ + 1, 6U);
  if (!is_complete) {
    next_report_ns_ = system::monotonic_ns() + (kSecondNs / 2 << failed_reports_);
    for (const fs::path& recording : in_hand_) examined_.erase(recording);
    if (progress.pid() != 0) {
      remark(std::string{progress.line()});
      told_.insert(progress.pid());
      if (!progress.bundle().empty())
        report_bundles({progress.bundle()}, directories_for(launched_.options));
    }
  }
  progress.end();
}

// Recordings of dead processes that no report has seen.
std::set<fs::path> ExitReports::new_dead() {
  std::set<fs::path> found;
  for (const bundles::Session& session :
       sessions_since_start(directories_for(launched_.options), launched_.facts)) {
    std::optional<int> unused;
    if (session.alive || examined_.contains(session.path) || !is_reportable(session, unused))
      continue;
    examined_.insert(session.path);
    found.insert(session.path);
  }
  return found;
}

void ExitReports::say_sum() {
  const std::string sum = process_.progress().take_sum();
  if (!sum.empty() && !launched_.options.quiet) remark(sum);
}

void ExitReports::sample(const deaths::DeathObserver& observer) try {
  const std::uint64_t now_ns = system::monotonic_ns();
  if (process_.is_running() || now_ns < next_report_ns_) return;
  if (now_ns >= next_sum_ns_) {
    say_sum();
    next_sum_ns_ = now_ns + 10 * kSecondNs;
  }
  // Those of other users can only be read as these users.
  const std::size_t ended = launched_.descendants.ended_count();
  const std::set<User> users = std::exchange(ended_before_, ended) != ended
                                   ? other_users(directories_for(launched_.options), launched_)
                                   : std::set<User>{};
  in_hand_ = new_dead();
  if (in_hand_.empty() && users.empty()) return;
  const bool is_started = process_.start([&](ReportProgress& progress) {
    report_dead(launched_, observer, told_, progress, &in_hand_);
    for (const User& user : users)
      as_user(user, [&] {
        report_dead(launched_, observer, told_, progress);
        return std::set<pid_t>{};
      });
  });
  if (!is_started) end_report(false);
} catch (const std::exception& error) {
  remark(error.what());
}

void ExitReports::report(const Ended& ended, const deaths::DeathObservation& observed) noexcept
    try {
  constexpr int kMostTries = 16;
  end_report(process_.wait());
  bool is_complete =
      process_.run([&](ReportProgress& progress) { report_exit(ended, observed, progress); });
  end_report(is_complete);
  // A recording whose report was killed is no longer explained as fully: each gets further.
  for (int tries = 0; !is_complete && tries < kMostTries; ++tries) {
    is_complete = process_.run(
        [&](ReportProgress& progress) { report_recordings(observed, launched_, told_, progress); });
    end_report(is_complete);
  }
  say_sum();
} catch (const std::exception& error) {
  remark(error.what());
}

void ExitReports::report_exit(const Ended& ended, const deaths::DeathObservation& observed,
                              ReportProgress& progress) const {
  const Launched& launched = launched_;
  const Options& options = launched.options;
  const Directories directories = directories_for(options);
  if (WIFSIGNALED(ended.wait_status)) report_recovered_by_watch(directories, launched);
  std::set<pid_t> recorded = report_recordings(observed, launched, told_, progress);
  recorded.insert(recorded_.begin(), recorded_.end());
  progress.take_recorded(recorded);
  report_as_other_users(other_users(directories, launched), recorded, observed, launched, told_,
                        progress);
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
  // A user of `oomrec run` has asked for a recording.
  const std::string unrecorded = take_unrecorded_line(launched);
  if (!unrecorded.empty() && !options.quiet) remark(unrecorded);
}

}  // namespace oomrec::tools::processes
