#include "tools/bundles/recover/dead_process.h"

#include <cstdint>

#include "common/verdict/verdict.h"
#include "tools/bundles/store/process_tree.h"

namespace oomrec::tools::bundles {
namespace {

constexpr std::uint64_t kNotableBytes = std::uint64_t{16} << 20;

// The directories with recordings of its parent, its workers and the other ranks.
std::vector<std::filesystem::path> directories_of_relatives(const DeadProcess& process) {
  return {process.session_directory, process.dump_directory};
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
  ended_by_launcher = other_rank_ran_short(recording.header(), directories);
  seen.ended_by_launcher = ended_by_launcher;
  ending = deaths::ending_of(recording.view(), seen);
  const bool ended_by_itself = state_of(recording.view()) != session::State::running;
  ended_by_failure =
      failed && (ended_by_itself || deaths::follows(recording.view(), ending, failed->last_ns));
}

bool is_notable_death(const DeadProcess& process) {
  if (process.ended_by_launcher && process.ending.outcome != OutcomeKind::recovered) return true;
  if (!process.ending.killed) return false;
  if (verdict::is_death_caused_by_memory(process.ending.verdict)) return true;
  return process.recording.held_bytes() >= kNotableBytes &&
         !was_terminated_by_parent(process.recording, directories_of_relatives(process));
}

}  // namespace oomrec::tools::bundles
