#include "tools/bundles/recover/orphans.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>

#include "common/bundle/bundle.h"
#include "common/options/options.h"
#include "common/session/directories.h"
#include "tools/base/error.h"
#include "tools/base/log.h"
#include "tools/base/text.h"
#include "tools/bundles/recover/completion.h"
#include "tools/bundles/recover/workers.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/own_file.h"
#include "tools/bundles/store/process_tree.h"
#include "tools/bundles/store/trigger.h"
#include "tools/bundles/store/writing.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::bundles {
namespace {

namespace fs = std::filesystem;
using session::State;

constexpr std::uint64_t kWorthKeepingBytes = std::uint64_t{16} << 20;

// The helper that wrote last is at work, for all that can be seen from here.
bool may_still_write(const session::Header& process) {
  const pid_t helper = process.helper_pid;
  const bool in_sight = helper > 0 && process.pid_namespace == system::pid_namespace();
  return !in_sight || kill(helper, 0) == 0 || errno == EPERM;
}

// The bundles that the same process wrote, the newest first.
std::vector<BundleSummary> bundles_of(const recording::Recording& orphan,
                                      const fs::path& directory) {
  std::vector<BundleSummary> own;
  for (BundleSummary& bundle : bundles_in({directory})) {
    if (bundle.pid != static_cast<std::uint64_t>(orphan.header().pid)) continue;
    const recording::Recording recorded{bundle.path / kRecordingName};
    if (recorded.header().start_realtime_ns == orphan.header().start_realtime_ns)
      own.push_back(std::move(bundle));
  }
  return own;
}

// The same where one is due, which may be on its way: it is renamed into place by its process's
// helper, also after that process was killed.
std::vector<BundleSummary> due_bundles_of(const recording::Recording& orphan,
                                          const fs::path& directory) {
  std::error_code error;
  std::vector<BundleSummary> own;
  wait_for_bundle([&] {
    if (!fs::is_directory(directory, error)) return true;
    const bool may_come = may_still_write(orphan.header());  // asked first: it may end in between
    own = bundles_of(orphan, directory);
    return !own.empty() || !may_come;
  });
  return own;
}

bool tells_refusal(const BundleSummary& bundle) {
  return number_of(read_json(bundle.path / "metadata.json"), "failure").has_value();
}

// When it was made, by the session's clock.
std::uint64_t monotonic_ns_of(const BundleSummary& bundle, const session::Header& header) {
  return header.start_monotonic_ns +
         (time_of_text(bundle.created_at_utc) - header.start_realtime_ns);
}

// Where it was wanted, or else beside the recording.
Recovered write_bundle_of(const recording::Recording& orphan, Trigger trigger,
                          const std::string& directory, const std::string& beside,
                          const deaths::Ending& ending, const session::ChildDeath* worker) {
  bundle::Cause cause;
  cause.trigger = trigger;
  session::Failure failure{};
  if (cause.trigger != Trigger::killed) last_refusal(orphan.view(), cause.failure, failure);
  if (cause.trigger == Trigger::crash) cause.failure = orphan.header().crash.failure;
  cause.outcome = ending.outcome;
  cause.outcome_value = ending.value;
  cause.alive = false;
  if (ending.killed) cause.death = &ending.death;
  if (cause.trigger == Trigger::killed) cause.child = worker;
  const Written wanted = write_bundle(orphan, cause, directory);
  if (!wanted.bundle.empty()) return {Recovery::made, wanted.bundle, ""};
  const Written detour = write_bundle(orphan, cause, beside);
  return {detour.bundle.empty() ? Recovery::left : Recovery::made, detour.bundle, wanted.problem};
}

}  // namespace

std::vector<fs::path> session_directories(const std::vector<fs::path>& dump_directories) {
  std::vector<fs::path> directories;
  std::vector<std::string> dumps = {""};
  for (const fs::path& dump : dump_directories) dumps.push_back(dump.string());
  for (const std::string& dump : dumps) {
    session::Wishes wishes;
    wishes.session_directory = std::getenv("OOMREC_SESSION_DIR");
    wishes.dump_directory = dump.c_str();
    for (int place = 0; place < static_cast<int>(session::Place::count_); ++place) {
      char buffer[4096];
      system::Text path{buffer};
      if (session::directory_in(static_cast<session::Place>(place), wishes, path)) {
        directories.emplace_back(fs::path{path.c_str()}.lexically_normal());
      }
    }
  }
  std::sort(directories.begin(), directories.end());
  directories.erase(std::unique(directories.begin(), directories.end()), directories.end());
  return directories;
}

std::vector<Session> sessions_of(const std::vector<fs::path>& dump_directories) {
  std::vector<Session> sessions;
  for (const fs::path& directory : session_directories(dump_directories)) {
    if (!session::open_own_directory(directory.c_str(), false).is_open()) continue;
    std::error_code error;
    for (fs::directory_iterator at{directory, error}, end; !error && at != end;
         at.increment(error)) {
      const OwnFile file{at->path()};
      if (at->path().extension() != session::kFileSuffix || !file.ours()) continue;
      const auto header = std::make_unique<session::Header>();
      Session found{at->path()};
      found.unfinished = !file.read_header(*header);
      if (found.unfinished && !file.never_began(found.path)) continue;
      found.pid =
          found.unfinished ? session::maker_of(found.path.filename().native()).pid : header->pid;
      found.parent_pid = header->parent_pid;
      found.start_ticks = header->start_ticks;
      found.start_monotonic_ns = header->start_monotonic_ns;
      found.alive = !found.unfinished && session::life_of(*header) == session::Life::alive;
      found.writable = access(directory.c_str(), W_OK) == 0;
      sessions.push_back(std::move(found));
    }
  }
  std::stable_sort(sessions.begin(), sessions.end(), [](const Session& a, const Session& b) {
    return std::pair{a.start_ticks, a.start_monotonic_ns} >
           std::pair{b.start_ticks, b.start_monotonic_ns};
  });
  return sessions;
}

Recovered recover(const Session& orphan, const fs::path& only_into,
                  const deaths::Watched& watched) {
  const OwnFile file{orphan.path};
  if (orphan.alive || !orphan.writable || !file.ours() || !file.claim()) return {};
  if (orphan.unfinished) {
    if (!file.never_began(orphan.path)) return {};
    unlink(orphan.path.c_str());
    return {Recovery::removed, {}, ""};
  }
  const recording::Recording recording{orphan.path};
  const std::string directory = recording.text(recording.header().dump_directory);
  if (!directory.starts_with('/')) return {};
  if (!only_into.empty() && fs::path{directory}.lexically_normal() != only_into.lexically_normal())
    return {};

  std::uint32_t index = 0;
  session::Failure failure{};
  const bool refused = last_refusal(recording.view(), index, failure);
  const bool told = refused && is_told(failure);
  const std::vector<fs::path> places{orphan.path.parent_path(), directory};
  deaths::Watched seen = with_word_of_parent(watched, recording.header(), places);
  seen.dismissed = other_rank_was_short(recording.header(), places);
  const deaths::Ending ending = deaths::ending_of(recording.view(), seen);
  const bool related = refused && (state_of(recording.view()) != State::running ||
                                   deaths::follows(recording.view(), ending, failure.last_ns));

  Recovered result{Recovery::removed, {}, ""};
  bool crash_told = false;
  const std::vector<BundleSummary> own =
      told ? due_bundles_of(recording, directory) : bundles_of(recording, directory);
  for (const BundleSummary& bundle : own) {
    if (!bundle.open) continue;
    if (!told || !tells_refusal(bundle)) {  // a warning before the end
      const bool soon =
          deaths::follows(recording.view(), ending, monotonic_ns_of(bundle, recording.header()));
      complete_bundle(bundle.path, recording, ending, soon);
    } else if (result.bundle.empty() &&
               complete_bundle(bundle.path, recording, ending, related, &crash_told)) {
      result = {Recovery::completed, bundle.path, ""};
    }
  }

  // A death that outranks a refusal is told in any case, another death only where it is news.
  const bool is_told_already =
      told && related &&
      (result.what == Recovery::completed || !verdict::outranks_refusal(ending.verdict));
  const bool lost = told && related && own.empty();  // its writer was killed as well
  const bool untold = lost || (refused && !told) || (crash_is_due(recording.view()) && !crash_told);
  const auto worker = fatal_worker(recording, ending, orphan.path.parent_path(), directory);
  const bool by_memory = verdict::is_death_by_memory(ending.verdict);
  // What became of the others is part of the story of the rank that ran out.
  const bool of_lost_job = seen.dismissed && ending.outcome != OutcomeKind::recovered;
  const bool worth_telling =
      worker || of_lost_job ||
      (ending.killed && (by_memory || (recording.held_bytes() >= kWorthKeepingBytes &&
                                       !was_dismissed(recording, places))));
  if (untold || (worth_telling && !is_told_already)) {
    const Trigger trigger = lost && !crash_is_due(recording.view()) ? trigger_of(failure)
                                                                    : trigger_of(recording.view());
    result = write_bundle_of(recording, trigger, directory, orphan.path.parent_path(), ending,
                             worker ? &*worker : nullptr);
  }
  if (result.what != Recovery::left) unlink(orphan.path.c_str());
  if (ending.killed) result.verdict = ending.verdict;
  return result;
}

std::vector<fs::path> recover_orphans(const std::vector<fs::path>& dump_directories) {
  std::vector<fs::path> told;
  for (const Session& session : sessions_of(dump_directories)) {
    if (session.alive) continue;
    for (const fs::path& directory : dump_directories) {
      try {
        const Recovered recovered = recover(session, directory);
        if (recovered.what == Recovery::made) {
          remark(fmt::format("process {} is gone: its recording is now {}", session.pid,
                             printable(recovered.bundle.string())));
        }
        if (!recovered.bundle.empty()) told.push_back(session.path);
        if (!recovered.problem.empty()) remark(recovered.problem);
        if (recovered.what != Recovery::left) break;
      } catch (const Error& error) {
        remark(error.what());
      }
    }
  }
  return told;
}

}  // namespace oomrec::tools::bundles
