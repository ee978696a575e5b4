#include "tools/deaths/evidence.h"

#include <fmt/format.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "common/session/directories.h"
#include "common/session/table.h"
#include "common/system/files.h"
#include "common/system/text.h"
#include "common/text/text.h"
#include "common/verdict/verdict.h"
#include "tools/base/directory.h"
#include "tools/deaths/cgroup_account.h"
#include "tools/deaths/current_health.h"
#include "tools/deaths/kernel_kills.h"
#include "tools/deaths/kernel_log.h"
#include "tools/deaths/user_killers.h"

namespace oomrec::tools::deaths {
namespace {

namespace fs = std::filesystem;
using session::Death;
using session::KernelLine;
using session::TableId;
using session::UserKiller;

bool is_this_host(const session::Header& header) {
  char host[sizeof header.host] = {};
  gethostname(host, sizeof host - 1);
  return std::strncmp(host, header.host, sizeof host - 1) == 0;
}

std::uint64_t live_bytes(const session::View& view) {
  const std::int64_t live =
      view.totals(Space::heap).live_bytes + view.totals(Space::map).live_bytes;
  return live > 0 ? static_cast<std::uint64_t>(live) : 0;
}

// Its threads, and their names with the executable's, which is the initial one.
void add_threads(KillQuery& query, const session::View& view) {
  query.names = {std::string{text::base_name(view.string(view.header().executable))},
                 std::string{text::base_name(view.string(program_of(view.header())))}};
  for (const auto& thread : session::entries<session::Thread>(view, TableId::threads)) {
    query.names.emplace_back(thread.name, strnlen(thread.name, sizeof thread.name));
    query.threads.push_back(static_cast<std::uint64_t>(thread.tid));
  }
}

// When it last gave a sign of life.
std::uint64_t last_sign_realtime_ns(const session::View& view) {
  const session::Header& header = view.header();
  std::uint64_t last = std::max(
      {header.start_monotonic_ns, header.last_tick_ns.load(), header.health.time_ns.load()});
  for (const auto& failure : session::entries<session::Failure>(view, TableId::failures))
    last = std::max(last, failure.last_ns.load());
  return header.start_realtime_ns + (last - header.start_monotonic_ns);
}

// Where the process ended: as the last look from outside found it, else as it has recorded itself.
// `directory` empty: not known, or not visible here.
MemoryCgroup last_cgroup(const session::View& view, const DeathObservation& observed) {
  const session::Header& header = view.header();
  if (observed.was_there || header.cgroup == 0) return observed.cgroup;
  return {recorded_cgroup(view), std::string{view.string(header.cgroup_path)}};
}

KillQuery query_for(const session::View& view, const MemoryCgroup& cgroup, const LogClock& clock,
                    Boot boot) {
  const session::Header& header = view.header();
  KillQuery query;
  query.pid = static_cast<std::uint64_t>(header.pid);
  query.helper_pid = helper_of(view);
  query.same_pid_namespace = header.pid_namespace == kInitialPidNamespace;
  add_threads(query, view);
  if (!query.same_pid_namespace) query.threads.clear();  // of another namespace than the log's
  query.cgroup = cgroup.path;
  query.host = std::string{header.host, strnlen(header.host, sizeof header.host)};
  const bool this_boot = boot == Boot::current;
  const std::uint64_t end = this_boot ? clock.now_realtime_ns : clock.boot_realtime_ns;
  query.from_realtime_ns = last_sign_realtime_ns(view) - clock.error_ns();
  query.clock_error_ns = clock.error_ns();
  query.to_realtime_ns = end + (this_boot ? clock.error_ns() : 0);
  query.rss_bytes = header.health.rss_bytes;
  query.most_bytes = live_bytes(view);
  return query;
}

// The directory of the cgroup in which the kernel killed it; empty: not known, or gone. `last`:
// where the process was last seen.
fs::path directory_of(const KernelKill& kill, const MemoryCgroup& last, const Death& death) {
  const bool is_other =
      !kill.cgroup.empty() && last.path.size() > 1 && !is_same_cgroup(kill.cgroup, last.path);
  if (!is_other) return verdict::died_in_another_cgroup(death) ? fs::path{} : last.directory;
  std::string directory = last.directory;
  if (!directory.ends_with(last.path)) return {};
  directory.replace(directory.size() - last.path.size(), last.path.npos, kill.cgroup);
  return directory;
}

session::CgroupAccount account_at(const KernelKill& kill, const session::View& view,
                                  const KillQuery& query) {
  OwnProcess own{kill.process, 0, view.header().off_reason == 0};
  std::set<std::uint64_t> recorded;
  // Pids of another namespace say nothing about the log's.
  if (query.same_pid_namespace) {
    own.pid = query.pid;
    own.helper = query.helper_pid;
    recorded = with_recorder(*kill.report, recorded_pids(view));
  }
  session::CgroupAccount account = account_of(*kill.report, own, recorded);
  account.source = static_cast<std::uint32_t>(session::AccountSource::kernel_log);
  return account;
}

// By a signal from outside, or its exit status is unknown.
bool was_killed(const Death& death) {
  if ((death.flags & session::kDeathWaited) == 0) return true;
  return WIFSIGNALED(death.wait_status) &&
         (WTERMSIG(death.wait_status) == SIGKILL || WTERMSIG(death.wait_status) == SIGTERM);
}

void read_user_killers(session::EndEvidence& evidence, const KillQuery& query,
                       const LogClock& clock, const KernelLogFile& file) {
  if (!was_killed(evidence.death)) return;
  const auto kill = user_kill_of(read_daemon_log(clock, query.from_realtime_ns, file), query);
  if (!kill) return;
  evidence.levels.user_killer = static_cast<std::uint32_t>(kill->killer);
  system::Text{evidence.levels.user_killer_line} << kill->line;
}

// What `oomrec ended` has entered. A process that goes on for long after that ends for another
// reason.
bool read_informant(session::EndEvidence& evidence, const session::Header& header) {
  constexpr std::uint64_t kMostNs = 120'000'000'000;
  const std::uint64_t told_ns = header.told_realtime_ns;
  if (told_ns == 0 || evidence.death.realtime_ns > told_ns + kMostNs) return false;
  evidence.levels.user_killer = header.end_levels.user_killer;
  std::memcpy(evidence.levels.user_killer_line, header.end_levels.user_killer_line,
              sizeof header.end_levels.user_killer_line);
  return true;
}

void note_parent_signal(session::EndLevels& levels, const ParentSignal& signal) {
  if (signal.for_memory) levels.user_killer = static_cast<std::uint32_t>(UserKiller::parent);
  levels.flags = signal.flags;
  system::Text{levels.user_killer_line} << signal.evidence;
}

// The kernel saw the end that nobody waited for.
void read_fault(Death& death, const KernelLog& log, const KillQuery& query) {
  const auto fault = fault_of(log, query);
  if (!fault) return;
  death.flags |= session::kDeathWaited | session::kDeathFaultLogged;
  death.wait_status = fault->signal;
  death.realtime_ns = fault->realtime_ns;
  system::Text{death.kernel_line} << fault->line;
}

void read_log(session::EndEvidence& evidence, const session::View& view, const MemoryCgroup& cgroup,
              const KernelLogFile& file, Boot boot) {
  Death& death = evidence.death;
  const LogClock clock = LogClock::now();
  const KillQuery query = query_for(view, cgroup, clock, boot);
  const KernelLog log = read_kernel_log(clock, boot, file);
  const std::vector<KernelKill> kills = kills_in(log);
  const bool is_identifiable = query.same_pid_namespace || query.cgroup.size() > 1;
  const bool reaches_back = log.reaches_back_to(query.from_realtime_ns);
  if (is_identifiable && reaches_back) death.flags |= session::kDeathLogRead;
  if (const KernelKill* const kill = kill_of(kills, query)) {
    death.kernel_line_kind = static_cast<std::uint32_t>(
        kill->kind != KernelLine::none ? kill->kind : KernelLine::unscoped);
    if (!is_by_pid(*kill, query)) death.flags |= session::kDeathLineByName;
    system::Text{death.kernel_line} << kill->line;
    death.realtime_ns = std::min(death.realtime_ns, kill->realtime_ns);
    if (kill->report != nullptr)
      evidence.account = account_at(*kill, view, query);
    else if (kill->resident.rss_bytes != 0 && boot == Boot::current && is_this_host(view.header()))
      evidence.account =
          remaining_account(view, directory_of(*kill, cgroup, death), &kill->resident);
  } else if (query.same_pid_namespace && reaches_back && only_others_killed(kills, query)) {
    death.flags |= session::kDeathOthers;
  }
  if (death.kernel_line_kind != 0 || read_informant(evidence, view.header())) return;
  read_user_killers(evidence, query, clock, file);
  const bool was_seen =
      (death.flags & session::kDeathWaited) != 0 || view.header().crash.signal.load() != 0;
  if (!was_seen && evidence.levels.user_killer == 0) read_fault(death, log, query);
}

void read_cgroup(Death& death, const session::View& view, const fs::path& own,
                 const DeathObservation& observed) {
  const session::Health& health = view.header().health;
  // In another container, the same path is another cgroup.
  if (!is_this_host(view.header())) return;
  if (own.empty()) return;
  std::error_code error;
  const bool gone = !fs::is_directory(own, error);
  const bool was_observed = own == observed.cgroup.directory;
  if (was_observed) {
    if (observed.counter_rose) death.flags |= session::kDeathAtOnce;
    if (observed.was_alone) death.flags |= session::kDeathAlone;
    if (observed.others_died) death.flags |= session::kDeathOthers;
  }
  std::optional<std::uint64_t> before;
  const auto after = gone ? oom_kills_below(own.parent_path()) : oom_kills_in(own);
  if (gone) {
    death.flags |= session::kDeathParentCgroup;
    if (was_observed) before = observed.parent_kills_before;
    if (after && *after == 0) before = after;
  } else if (health.time_ns != 0 && own == recorded_cgroup(view)) {
    before = health.cgroup_oom_kills.load();
  } else if (was_observed) {
    before = observed.kills_before;
  }
  if (!before || !after) return;
  death.flags |= session::kDeathCgroupCounted;
  death.cgroup_oom_kills_before = *before;
  death.cgroup_oom_kills_after = *after;
}

void read_machine(Death& death, const session::View& view, const DeathObservation& observed) {
  const session::Health& health = view.header().health;
  const auto before = health.time_ns != 0 ? std::optional{health.system_oom_kills.load()}
                                          : observed.system_kills_before;
  const auto after = system_oom_kills();
  if (!before || !after) return;
  death.flags |= session::kDeathSystemCounted;
  death.system_oom_kills_before = *before;
  death.system_oom_kills_after = *after;
}

// Whether the file system of its shared memory is full now. Compares type and size: it may not be
// the one mounted here.
void read_shared_memory(Death& death, const session::Header& header) {
  constexpr long kTmpfs = 0x01021994;
  const session::SharedMemory& shared = header.shared;
  if (shared.time_ns == 0 || !is_this_host(header)) return;
  const std::string path{shared.path, strnlen(shared.path, sizeof shared.path)};
  struct statfs now {};
  if (!path.starts_with('/') || statfs(fs::path{path}.parent_path().c_str(), &now) != 0) return;
  const auto block_bytes = static_cast<std::uint64_t>(now.f_bsize);
  if (now.f_type != kTmpfs || now.f_blocks * block_bytes != shared.total_bytes) return;
  if (now.f_bavail <= now.f_blocks / 100) death.flags |= session::kDeathSharedFull;
}

}  // namespace

bool is_this_boot(const session::Header& header) {
  return !system::is_of_other_boot(header.boot_id);
}

session::EndEvidence end_evidence_of(const session::View& view, const DeathObservation& observed) {
  session::EndEvidence evidence{};
  Death& death = evidence.death;
  evidence.levels = observed.levels;
  death.realtime_ns = observed.realtime_ns != 0 ? observed.realtime_ns : system::realtime_ns();
  const bool this_boot = is_this_boot(view.header());
  if (!this_boot) death.flags |= session::kDeathEarlierBoot;
  if (observed.wait_status) {
    death.flags |= session::kDeathWaited;
    death.wait_status = *observed.wait_status;
    death.sender_pid = observed.sender;
    death.pressure_some = observed.pressure.some;
    death.pressure_full = observed.pressure.full;
  }
  if (death.sender_pid == 0) death.sender_pid = view.header().crash.sender_pid;
  if (observed.ended_by_launcher) death.flags |= session::kDeathEndedByLauncher;
  if (observed.parent_signal.after_another) death.flags |= session::kDeathAfterSibling;
  const MemoryCgroup cgroup = last_cgroup(view, observed);
  if (this_boot) {
    read_cgroup(death, view, cgroup.directory, observed);
    read_machine(death, view, observed);
    read_shared_memory(death, view.header());
  }
  read_log(evidence, view, cgroup, observed.kernel_log, this_boot ? Boot::current : Boot::earlier);
  if (death.kernel_line_kind == 0 && evidence.levels.user_killer == 0)
    note_parent_signal(evidence.levels, observed.parent_signal);
  if (evidence.account.source_kind() == session::AccountSource::none && this_boot &&
      was_killed(death) && is_this_host(view.header()))
    evidence.account = remaining_account(view, cgroup.directory, nullptr);
  return evidence;
}

std::set<std::uint64_t> recorded_pids(const session::View& view) {
  std::set<std::uint64_t> pids;
  if (view.header().off_reason == 0) pids.insert(static_cast<std::uint64_t>(view.header().pid));
  const std::string dumps{view.string(view.header().dump_directory)};
  session::DirectoryOptions options;
  options.session_directory = std::getenv("OOMREC_SESSION_DIR");
  options.dump_directory = dumps.empty() ? nullptr : dumps.c_str();
  char buffer[4096] = {};
  system::Text path{buffer};
  session::find_directory(options, path, [&](const session::Directory&) {
    // Another user could claim any process by files with such names.
    if (!session::open_own_directory(buffer, session::IfMissing::fail).is_open()) return false;
    for (const std::filesystem::path& file : entries_of(buffer)) {
      const session::Creator creator = session::creator_of(file.filename().native());
      const std::uint64_t now = creator.pid != 0 ? system::start_ticks(creator.pid) : 0;
      const bool is_reused = now != 0 && now != creator.start_ticks;
      if (creator.pid != 0 && !is_reused) pids.insert(static_cast<std::uint64_t>(creator.pid));
    }
    return false;
  });
  return pids;
}

bool has_recorder(std::uint64_t pid) {
  std::ifstream mappings{fmt::format("{}/{}/maps", system::g_roots.proc, pid)};
  for (std::string line; std::getline(mappings, line);)
    if (line.ends_with("/liboomrec.so")) return true;
  return false;
}

}  // namespace oomrec::tools::deaths
