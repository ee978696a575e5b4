#include "tools/bundles/recover/dead_process.h"

#include <csignal>
#include <cstdint>
#include <utility>

#include "common/system/units.h"
#include "common/verdict/verdict.h"
#include "tools/bundles/store/parent_signal.h"
#include "tools/bundles/store/process_tree.h"

namespace oomrec::tools::bundles {
namespace {

// Whether its bundle lacks memory that the process took since the failure.
bool has_grown_since(const recording::Recording& recording, const FailedRequest& failed) {
  session::Failure failure{};
  return recording.view().read(session::TableId::failures, failed.index, failure) &&
         recording.held_bytes() >= failure.live_bytes + kNotableBytes;
}

// The directories with recordings of its parent, its workers and the other ranks.
std::vector<std::filesystem::path> directories_of_relatives(const DeadProcess& process) {
  return {process.session_directory, process.dump_directory};
}

// Whether a parent that runs the same program ended it by SIGTERM, as pools do at shutdown.
bool is_end_of_pool(const DeadProcess& process) {
  return process.terminated_by_parent ||
         was_terminated_by_parent(process.recording, directories_of_relatives(process));
}

// Whether another process ended it by SIGKILL or SIGTERM, not for lack of memory, after it had gone
// on for a second. What a failure brings about comes sooner, but for a parent that ends its
// workers.
bool was_ended_by_another(const DeadProcess& process) {
  constexpr std::uint64_t kWentOnNs = 1'000'000'000;
  const deaths::Ending& ending = process.ending;
  return ending.outcome == OutcomeKind::signal &&
         (ending.value == SIGKILL || ending.value == SIGTERM) &&
         ending.verdict == VerdictCode::killed_externally && !process.ended_by_launcher &&
         !deaths::follows(process.recording.view(), ending, process.failed->last_ns, kWentOnNs) &&
         !is_end_of_pool(process);
}

// Whether it was at its peak, and had grown by 16 MiB within its last ten seconds.
bool was_growing(const recording::Recording& recording) {
  const session::View& view = recording.view();
  const std::uint64_t end_ns = recording.end_ns(), held = recording.held_bytes();
  if (held < recording.peak_bytes() / 100 * 95) return false;
  std::uint64_t least = held;
  for (const auto& point : session::entries<session::Point>(view, session::TableId::points)) {
    if (point.time_ns == 0 || point.time_ns + 10 * kSecondNs < end_ns) continue;
    least = std::min(least, recording::held_bytes_of(point));
  }
  return held - least >= kNotableBytes;
}

}  // namespace

std::string dump_directory_of(const recording::Recording& recording) {
  const std::string directory = recording.text(recording.header().dump_directory);
  return directory.starts_with('/') ? directory : std::string{};
}

DeadProcess::DeadProcess(const recording::Recording& of, const deaths::DeathObservation& observed)
    : recording(of),
      session_directory(of.path().parent_path()),
      dump_directory(dump_directory_of(of)),
      failed(last_failed_request(of.view())) {
  const std::vector<std::filesystem::path> directories = directories_of_relatives(*this);
  deaths::DeathObservation seen =
      with_wait_status_from_parent(observed, recording.header(), directories);
  seen = with_signal_from_parent(std::move(seen), recording.header(), directories,
                                 was_growing(recording));
  // Its parent may not have waited for it yet, or have ended since, and taken its recording with
  // it.
  const bool by_term =
      seen.wait_status && WIFSIGNALED(*seen.wait_status) && WTERMSIG(*seen.wait_status) == SIGTERM;
  terminated_by_parent =
      by_term && !seen.parent_signal.program.empty() &&
      seen.parent_signal.program == recording.text(recording.header().executable);
  ended_by_launcher = other_rank_ran_short(recording.header(), directories);
  seen.ended_by_launcher = ended_by_launcher;
  ending = deaths::ending_of(recording.view(), seen);
  if (ending.killed && !seen.wait_status && gone_launcher_of(of) != 0)
    ending.evidence.levels.flags |= session::kLauncherGone;
  const bool ended_by_itself = state_of(recording.view()) != session::State::running;
  survived_failure =
      failed && (verdict::is_separate_crash(recording.view()) || was_ended_by_another(*this));
  const bool survived_until_killed =
      failed && verdict::outranks_failure(ending.verdict) && has_grown_since(recording, *failed);
  ended_by_failure =
      failed && !survived_failure && !survived_until_killed &&
      (ended_by_itself || deaths::follows(recording.view(), ending, failed->last_ns));
}

namespace {

// What it held. free() of a wrong address takes an arbitrary size from the counters: if nothing is
// left after a crash, what was resident counts.
std::uint64_t size_of(const DeadProcess& process) {
  const std::uint64_t held = process.recording.held_bytes();
  const bool crashed = process.ending.verdict == VerdictCode::crashed;
  return crashed && held == 0 ? process.recording.header().health.rss_bytes.load() : held;
}

// Whether the kernel's records say that it did not kill the process. Its cgroup's counter includes
// kills because the machine was short of memory; the machine's counter includes kills in other
// cgroups.
bool is_kernel_kill_excluded(const session::Death& death) {
  const auto has = [&](std::uint32_t flag) { return (death.flags & flag) != 0; };
  const bool is_counted = has(session::kDeathCgroupCounted);
  const bool cgroup_rose =
      is_counted && death.cgroup_oom_kills_after > death.cgroup_oom_kills_before;
  if (cgroup_rose || has(session::kDeathEarlierBoot)) return false;
  if (is_counted && !has(session::kDeathParentCgroup)) return true;
  const bool system_rose = has(session::kDeathSystemCounted) &&
                           death.system_oom_kills_after > death.system_oom_kills_before;
  return !system_rose && (has(session::kDeathLogRead) || is_counted);
}

// Nobody saw the end, and memory had no part in it.
bool left_without_trace(const DeadProcess& process) {
  const session::SharedMemory& shared = process.recording.header().shared;
  return process.ending.outcome == OutcomeKind::unknown &&
         process.ending.verdict == VerdictCode::unknown && !process.failed && !shared.too_small() &&
         is_kernel_kill_excluded(process.ending.death());
}

}  // namespace

bool ended_as_usual(const deaths::Ending& ending) {
  return ending.outcome == OutcomeKind::signal &&
         (ending.value == SIGINT || ending.value == SIGPIPE);
}

bool ended_unseen(const DeadProcess& process) {
  return process.ending.killed && process.recording.held_bytes() >= kNotableBytes &&
         left_without_trace(process) && !is_end_of_pool(process);
}

bool is_notable_death(const DeadProcess& process, UnknownEnds unknown) {
  if (process.ended_by_launcher && process.ending.outcome != OutcomeKind::recovered) return true;
  if (!process.ending.killed) return false;
  if (verdict::is_death_caused_by_memory(process.ending.verdict)) return true;
  if (process.survived_failure && process.has_failure_in_bundle()) return true;
  if (size_of(process) < kNotableBytes || ended_as_usual(process.ending)) return false;
  if (unknown != UnknownEnds::keep && left_without_trace(process)) return false;
  return !is_end_of_pool(process);
}

}  // namespace oomrec::tools::bundles
