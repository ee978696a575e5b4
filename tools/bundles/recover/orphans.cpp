#include "tools/bundles/recover/orphans.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "common/bundle/bundle.h"
#include "common/system/files.h"
#include "common/text/text.h"
#include "common/verdict/verdict.h"
#include "tools/base/error.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/recover/completion.h"
#include "tools/bundles/recover/dead_process.h"
#include "tools/bundles/recover/workers.h"
#include "tools/bundles/store/access.h"
#include "tools/bundles/store/process_tree.h"
#include "tools/bundles/store/trigger.h"
#include "tools/bundles/store/writing.h"
#include "tools/deaths/evidence.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::bundles {
namespace {

namespace fs = std::filesystem;

// True: no other process recovers it while `file` is open.
bool claim(const Session& orphan, const OwnFile& file) {
  return !orphan.alive && orphan.writable && file.is_ours() && file.claim();
}

RecoveryResult remove_unfinished(const Session& orphan, const OwnFile& file) {
  if (!file.was_never_completed(orphan.path)) return {};
  unlink(orphan.path.c_str());
  return {RecoveryAction::removed, {}, ""};
}

bool belongs_to(const std::string& dump_directory, const fs::path& only_into) {
  return only_into.empty() ||
         fs::path{dump_directory}.lexically_normal() == only_into.lexically_normal();
}

// The process began a bundle of the failure that ended it, but its helper was killed, too.
bool is_bundle_lost(const DeadProcess& process, const OwnBundles& own) {
  return process.has_failure_in_bundle() && process.ended_by_failure && !own.any;
}

// Whether there is a failure or a crash that no bundle contains.
bool has_unrecorded_event(const DeadProcess& process, const OwnBundles& own) {
  return is_bundle_lost(process, own) || (process.failed && !process.has_failure_in_bundle()) ||
         (process.crash_is_due() && !own.crash_recorded);
}

// Whether one bundle contains both the failure and the death that followed it. A death that
// outranks the failure must have been added to that bundle.
bool is_death_recorded(const DeadProcess& process, const OwnBundles& own) {
  return process.has_failure_in_bundle() && process.ended_by_failure &&
         (!own.completed.empty() || !verdict::outranks_failure(process.ending.verdict));
}

Trigger trigger_of(const DeadProcess& process, const OwnBundles& own) {
  return is_bundle_lost(process, own) && !process.crash_is_due()
             ? process.failed->trigger
             : bundles::trigger_of(process.recording.view());
}

bundle::Cause cause_of(const DeadProcess& process, Trigger trigger,
                       const std::optional<session::ChildDeath>& worker) {
  bundle::Cause cause;
  cause.trigger = trigger;
  if (trigger == Trigger::crash)
    cause.failure = process.recording.header().crash.failure;
  else if (trigger != Trigger::killed && process.failed)
    cause.failure = process.failed->index;
  cause.outcome = process.ending.outcome;
  cause.outcome_value = process.ending.value;
  cause.alive = false;
  if (process.ending.killed) cause.end = &process.ending.evidence;
  if (trigger == Trigger::killed && worker) cause.child = &*worker;
  return cause;
}

// In the dump directory; if that fails, or the process had none, as its working directory had been
// deleted, beside the recording.
RecoveryResult write_bundle_of(const DeadProcess& process, const bundle::Cause& cause) {
  WriteResult in_dumps;
  if (!process.dump_directory.empty())
    in_dumps = write_bundle(process.recording, cause, process.dump_directory);
  if (!in_dumps.bundle.empty()) return {RecoveryAction::made, in_dumps.bundle, ""};
  const WriteResult beside = write_bundle(process.recording, cause, process.session_directory);
  return {beside.bundle.empty() ? RecoveryAction::left : RecoveryAction::made, beside.bundle,
          in_dumps.problem};
}

// Whether the process lived within the last day, and in this boot.
bool is_recent(const recording::Recording& recording) {
  constexpr std::uint64_t kDayNs = std::uint64_t{24} * 3600 * 1'000'000'000;
  const session::Header& header = recording.header();
  const std::uint64_t last = std::max(header.start_monotonic_ns, header.last_tick_ns.load());
  const std::uint64_t now = system::monotonic_ns();
  return deaths::is_this_boot(header) && last <= now && now - last < kDayNs;
}

// Completes the bundles that the process wrote. Writes one for an event that is in none of them.
RecoveryResult make_bundle(const DeadProcess& process, const RecoverOptions& options) {
  const OwnBundles own = complete_own_bundles(process);
  const std::optional<session::ChildDeath> worker = fatal_worker(process, options.dump_directories);
  const bool is_death_due =
      (worker || is_notable_death(process, options.unknown)) && !is_death_recorded(process, own);
  if (has_unrecorded_event(process, own) || is_death_due) {
    if (!own.with_end.empty()) return {RecoveryAction::completed, own.with_end, ""};
    if (options.before_bundle) options.before_bundle(process);
    return write_bundle_of(process, cause_of(process, trigger_of(process, own), worker));
  }
  if (!own.completed.empty()) return {RecoveryAction::completed, own.completed, ""};
  const bool leave = options.unknown == UnknownEnds::leave && is_recent(process.recording);
  return {
      leave && ended_unseen(process) ? RecoveryAction::unseen : RecoveryAction::removed, {}, ""};
}

void report(const Session& session, const RecoveryResult& recovered) {
  if (recovered.action == RecoveryAction::made) {
    remark(fmt::format("process {} is gone: its recording is now {}", session.pid,
                       printable(recovered.bundle.string())));
  }
  if (!recovered.problem.empty()) remark(recovered.problem);
}

struct UnseenEnd {
  std::uint64_t last_seen_ns = 0;  // since 1970
  std::string process;             // "python3.11 (pid 7487), last seen 2026-11-28T13:49:01Z,"
  std::int32_t launcher = 0;       // gone_launcher_of()
};

UnseenEnd unseen_end_of(const fs::path& session) {
  const recording::Recording recording{session};
  const session::Header& header = recording.header();
  const std::uint64_t last_seen_ns = recording.realtime_of(recording.end_ns());
  const std::string program = recording.text(program_of(header));
  return {last_seen_ns,
          fmt::format("{} (pid {}), last seen {},", printable(text::base_name(program)), header.pid,
                      time_text(last_seen_ns)),
          gone_launcher_of(recording)};
}

// The newest by name, the others as a number.
std::string subject_of(const std::vector<UnseenEnd>& ends) {
  const auto newest = std::ranges::max_element(ends, {}, &UnseenEnd::last_seen_ns);
  return ends.size() == 1 ? newest->process
                          : fmt::format("{} and {} more", newest->process, ends.size() - 1);
}

}  // namespace

RecoveryResult recover(const Session& orphan, const RecoverOptions& options) {
  const OwnFile file{orphan.path};
  if (!claim(orphan, file)) return {};
  if (orphan.unfinished) return remove_unfinished(orphan, file);
  const recording::Recording recording{orphan.path};
  if (!belongs_to(dump_directory_of(recording), options.only_into)) return {};
  const DeadProcess process{recording, options.observed};
  RecoveryResult result = make_bundle(process, options);
  if (result.action != RecoveryAction::left && result.action != RecoveryAction::unseen)
    unlink(orphan.path.c_str());
  if (process.ending.killed) result.verdict = process.ending.verdict;
  return result;
}

void recover_all(UnknownEnds unknown,
                 const std::function<void(const Session&, const RecoveryResult&)>& visit) {
  for (const Session& session : sessions_of(dump_directories())) {
    if (session.alive) continue;
    RecoveryResult result;
    try {
      result = recover(session, {.unknown = unknown});
    } catch (const Error& error) {
      result.problem = error.what();
    }
    visit(session, result);
  }
}

std::vector<fs::path> recover_orphans(const std::vector<fs::path>& dump_directories) {
  std::vector<fs::path> in_bundles;
  std::vector<UnseenEnd> unseen;
  for (const Session& session : sessions_of(dump_directories)) {
    if (session.alive) continue;
    for (const fs::path& directory : dump_directories) {
      try {
        const RecoveryResult recovered =
            recover(session, {.only_into = directory, .unknown = UnknownEnds::leave});
        report(session, recovered);
        if (!recovered.bundle.empty()) in_bundles.push_back(session.path);
        if (recovered.action == RecoveryAction::unseen)
          unseen.push_back(unseen_end_of(session.path));
        if (recovered.action != RecoveryAction::left) break;
      } catch (const Error& error) {
        remark(error.what());
      }
    }
  }
  if (!unseen.empty()) {
    const std::int32_t launcher = unseen.size() == 1 ? unseen.front().launcher : 0;
    remark(fmt::format(
        "{} ended with an unknown exit status{}; no evidence of a memory problem (oomrec recover "
        "--unknown makes bundles of such recordings, which are kept for a day)",
        subject_of(unseen),
        launcher == 0 ? ""
                      : fmt::format(", as oomrec run (pid {}), which had started it, was not there "
                                    "to see its end",
                                    launcher)));
  }
  return in_bundles;
}

}  // namespace oomrec::tools::bundles
