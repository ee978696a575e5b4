#include "tools/processes/launch/unrecorded_kills.h"

#include <string_view>

#include "common/session/layout.h"
#include "common/system/files.h"
#include "common/system/text.h"
#include "tools/deaths/kernel_kills.h"

namespace oomrec::tools::processes {
namespace {

constexpr std::size_t kMostKills = 4;  // of a program that restarts what is killed

// The clock of the log may be wrong by seconds, but pids are given out in turn: a process whose pid
// comes before the program's is older, and not of this run.
bool is_younger(const deaths::KernelKill& kill, const ProgramFacts& program,
                std::uint64_t pid_max) {
  const auto own = static_cast<std::uint64_t>(program.pid);
  return kill.pid != own && (kill.pid + pid_max - own) % pid_max < pid_max / 2;
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

// A machine without memory kills whatever it likes, and a cgroup at its limit one of its own.
bool is_in_cgroup(const deaths::KernelKill& kill, std::string_view cgroup) {
  return kill.kind == session::KernelLine::cgroup && cgroup.size() > 1 &&
         (kill.cgroup == cgroup || kill.cgroup.starts_with(std::string{cgroup} + "/"));
}

ProgramFacts facts_of(const deaths::KernelKill& kill, const ProgramFacts& program) {
  ProgramFacts facts;
  facts.pid = static_cast<pid_t>(kill.process != 0 ? kill.process : kill.pid);
  facts.start_realtime_ns = program.start_realtime_ns;
  facts.start_monotonic_ns = program.start_monotonic_ns;
  facts.executable = facts.name = kill.name;
  facts.cgroup = program.cgroup;
  facts.health = program.health;
  return facts;
}

}  // namespace

std::vector<ProgramFacts> unrecorded_kills(const ProgramFacts& program,
                                           const std::set<pid_t>& recorded,
                                           const deaths::KernelLogFile& kernel_log) {
  std::vector<ProgramFacts> found;
  if (system::pid_namespace() != deaths::kInitialPidNamespace) return found;
  const deaths::LogClock clock = deaths::LogClock::now();
  const deaths::KernelLog log = deaths::read_kernel_log(clock, deaths::Boot::current, kernel_log);
  const std::uint64_t pid_max = read_pid_max();
  for (const deaths::KernelKill& kill : deaths::kills_in(log)) {
    if (kill.realtime_ns + clock.error_ns() < program.start_realtime_ns ||
        !is_younger(kill, program, pid_max) || !is_in_cgroup(kill, program.cgroup.named))
      continue;
    ProgramFacts facts = facts_of(kill, program);
    if (recorded.contains(facts.pid) || recorded.contains(static_cast<pid_t>(kill.pid))) continue;
    found.push_back(std::move(facts));
    if (found.size() == kMostKills) break;
  }
  return found;
}

}  // namespace oomrec::tools::processes
