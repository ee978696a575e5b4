#include "tools/processes/supervise/unrecorded_kills.h"

#include <algorithm>

#include "common/session/layout.h"
#include "common/system/files.h"
#include "common/system/text.h"
#include "tools/deaths/kernel_kills.h"

namespace oomrec::tools::processes {
namespace {

constexpr std::size_t kMostKills = 4;  // of a program that restarts what is killed
constexpr std::uint64_t kEndedTogetherNs = 2'000'000'000;

// The clock of the log may be wrong by seconds, but pids are given out in turn: a process whose pid
// comes before the program's is older, and not of this run.
bool is_of_this_run(const deaths::KernelKill& kill, const ProgramFacts& program,
                    std::uint64_t pid_max) {
  const auto own = static_cast<std::uint64_t>(program.pid);
  return (kill.pid + pid_max - own) % pid_max < pid_max / 2;
}

bool is_of_this_time(const deaths::KernelKill& kill, const ProgramFacts& program,
                     const deaths::LogClock& clock, std::uint64_t pid_max) {
  return kill.realtime_ns + clock.error_ns() >= program.start_realtime_ns &&
         is_of_this_run(kill, program, pid_max);
}

std::uint64_t read_pid_max() {
  constexpr std::uint64_t kMost = 4'194'304;  // of the kernel, on 64 bits
  char path[320];
  char text[32];
  system::Text{path} << system::g_roots.proc << "/sys/kernel/pid_max";
  const long bytes = system::read_file(path, text, sizeof text);
  const std::uint64_t read =
      bytes > 0 ? system::number_in({text, static_cast<std::size_t>(bytes)}) : 0;
  return read != 0 ? read : kMost;
}

pid_t pid_of(const deaths::KernelKill& kill) {
  return static_cast<pid_t>(kill.process != 0 ? kill.process : kill.pid);
}

bool is_descendant(const deaths::KernelKill& kill, const Descendants& descendants) {
  return descendants.contains(static_cast<pid_t>(kill.pid)) || descendants.contains(pid_of(kill));
}

ProgramFacts facts_of(pid_t pid, const std::string& name, const ProgramFacts& program) {
  ProgramFacts facts;
  facts.pid = pid;
  facts.start_realtime_ns = program.start_realtime_ns;
  facts.start_monotonic_ns = program.start_monotonic_ns;
  facts.executable = facts.name = name;
  facts.cgroup = program.cgroup;
  facts.health = program.health;
  return facts;
}

// `own_pid`: in its own pid namespace, by which its recording names it; 0: unknown.
bool is_recorded(pid_t pid, pid_t own_pid, const std::set<pid_t>& recorded) {
  return recorded.contains(pid) || (own_pid != 0 && recorded.contains(own_pid));
}

// The largest of those that ended with the program and had no recording; null: none did, or another
// one was nearly as large.
const Descendant* largest_of(const std::vector<Descendant>& ended, const std::set<pid_t>& recorded,
                             pid_t program) {
  const Descendant* largest = nullptr;
  std::uint64_t second_bytes = 0;
  for (const Descendant& one : ended) {
    if (one.pid == program || is_recorded(one.pid, one.own_pid, recorded)) continue;
    const bool is_larger = largest == nullptr || one.resident_bytes > largest->resident_bytes;
    const std::uint64_t bytes_before = largest == nullptr ? 0 : largest->resident_bytes;
    second_bytes = std::max(second_bytes, is_larger ? bytes_before : one.resident_bytes);
    if (is_larger) largest = &one;
  }
  return largest != nullptr && second_bytes <= largest->resident_bytes / 2 ? largest : nullptr;
}

// In the cgroup of the program, by the kernel's counter.
std::uint64_t counted_kills(const deaths::DeathObservation& observed) {
  const auto now = deaths::oom_kills_in(observed.cgroup.directory);
  return now && observed.kills_before && *now > *observed.kills_before
             ? *now - *observed.kills_before
             : 0;
}

}  // namespace

std::vector<UnrecordedKill> unrecorded_kills(const ProgramFacts& program,
                                             const Descendants& descendants,
                                             const std::set<pid_t>& recorded,
                                             const deaths::DeathObservation& observed) {
  std::vector<UnrecordedKill> found;
  if (system::pid_namespace() != deaths::kInitialPidNamespace) return found;
  const deaths::LogClock clock = deaths::LogClock::now();
  const deaths::KernelLog log =
      deaths::read_kernel_log(clock, deaths::Boot::current, observed.kernel_log);
  const std::uint64_t pid_max = read_pid_max();
  deaths::DeathObservation of_others;
  of_others.kernel_log = observed.kernel_log;
  const std::vector<deaths::KernelKill> kills = deaths::kills_in(log);
  const auto is_in_cgroup = [&](const deaths::KernelKill& kill) {
    return kill.kind == session::KernelLine::cgroup && program.cgroup.named[1] != '\0' &&
           kill.cgroup == program.cgroup.named;
  };
  const auto is_unnamed = [](const deaths::KernelKill& kill) {
    return kill.kind == session::KernelLine::cgroup && kill.cgroup.empty();
  };
  const auto has_recording = [&](const deaths::KernelKill& kill) {
    const pid_t pid = pid_of(kill);
    return recorded.contains(static_cast<pid_t>(kill.pid)) ||
           is_recorded(pid, descendants.own_pid_of(pid), recorded);
  };
  const auto is_stranger = [&](const deaths::KernelKill& kill) {
    return is_unnamed(kill) && !is_descendant(kill, descendants) && !has_recording(kill);
  };
  // Kills of the cgroup that the kernel counted, but logged without the cgroup's name, as it does
  // if it kills often, or not at all. Others of such a log are of other cgroups.
  std::uint64_t unnamed = counted_kills(observed);
  std::uint64_t strangers = 0;
  for (const deaths::KernelKill& kill : kills) {
    if (!is_of_this_time(kill, program, clock, pid_max)) continue;
    if (is_stranger(kill))
      ++strangers;
    else if ((is_in_cgroup(kill) || is_unnamed(kill)) && unnamed > 0)
      --unnamed;
  }
  const bool are_strangers_ours = strangers <= unnamed && descendants.are_alone_in_cgroup();
  for (const deaths::KernelKill& kill : kills) {
    if (!is_of_this_time(kill, program, clock, pid_max)) continue;
    const bool is_taken = is_stranger(kill) && are_strangers_ours;
    const bool is_ours = is_descendant(kill, descendants) ||
                         (descendants.are_alone_in_cgroup() && is_in_cgroup(kill)) || is_taken;
    const bool is_program = kill.pid == static_cast<std::uint64_t>(program.pid);
    if (!is_ours || is_program || found.size() == kMostKills) continue;
    if (is_taken) --unnamed;
    if (has_recording(kill)) continue;
    found.push_back({facts_of(pid_of(kill), kill.name, program), of_others});
  }
  if (!observed.counter_rose || unnamed == 0 || !descendants.are_alone_in_cgroup()) return found;
  const std::vector<Descendant> ended =
      descendants.ended_since(system::monotonic_ns() - kEndedTogetherNs);
  const Descendant* const largest = largest_of(ended, recorded, program.pid);
  if (largest == nullptr || found.size() == kMostKills) return found;
  of_others.cgroup = observed.cgroup;
  of_others.kills_before = observed.kills_before;
  of_others.counter_rose = true;
  of_others.levels.resident_peak_bytes = largest->resident_bytes;
  found.push_back({facts_of(largest->pid, largest->name, program), of_others});
  return found;
}

}  // namespace oomrec::tools::processes
