// What the kernel counts and lists of a memory cgroup and of the machine, now.
//
// Roots are recorder/system's, so that tests bring their own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace oomrec::tools::deaths {

struct MemoryCgroup {
  std::filesystem::path directory;  // empty: not known
  std::string path;                 // as /proc/PID/cgroup names it
};

// That of this process.
MemoryCgroup own_cgroup();

// Kills by the kernel for memory, so far: `oom_kill` of memory.events.local, memory.events (v2) or
// memory.oom_control (v1). Nothing where there is no such cgroup or count, as in the root of v2.
std::optional<std::uint64_t> oom_kills_in(const std::filesystem::path& cgroup);

// The same of a cgroup and all below it (v2; v1 does not add them up).
std::optional<std::uint64_t> oom_kills_below(const std::filesystem::path& cgroup);

// Of the machine: /proc/vmstat, since Linux 4.13.
std::optional<std::uint64_t> system_oom_kills();

// Processes in a cgroup, in order; nothing when there are more than can be looked at often.
std::optional<std::vector<pid_t>> processes_in(const std::filesystem::path& cgroup);

// PSI of memory: the share of the last 10 s in which some or all tasks waited, in 1/100 %.
struct Pressure {
  std::uint32_t some = 0;
  std::uint32_t full = 0;
};
// Of the cgroup where it has its own (v2), else of the machine.
Pressure pressure_of(const std::filesystem::path& cgroup);

}  // namespace oomrec::tools::deaths
