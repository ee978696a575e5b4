// Reads the kernel's counters of a memory cgroup and of the machine.
//
// Paths start at system::g_roots, which tests replace.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace oomrec::tools::deaths {

struct MemoryCgroup {
  std::filesystem::path directory;  // empty: unknown
  std::string path;                 // as in /proc/PID/cgroup
};

// The cgroup of this process.
MemoryCgroup own_cgroup();

// The OOM kills in a cgroup so far: `oom_kill` in memory.events.local, memory.events (v2) or
// memory.oom_control (v1). Empty if the cgroup or the counter does not exist, as in the root of v2.
std::optional<std::uint64_t> oom_kills_in(const std::filesystem::path& cgroup);

// The same including all descendants (v2 only; v1 does not sum them).
std::optional<std::uint64_t> oom_kills_below(const std::filesystem::path& cgroup);

// The machine's OOM kills: /proc/vmstat, since Linux 4.13.
std::optional<std::uint64_t> system_oom_kills();

// How often a cgroup was at its limit and had to reclaim or kill: `max` in memory.events (v2),
// memory.failcnt (v1).
std::optional<std::uint64_t> limit_hits_in(const std::filesystem::path& cgroup);

// The most that a cgroup ever used, page cache included: memory.peak, memory.max_usage_in_bytes.
std::optional<std::uint64_t> peak_usage_in(const std::filesystem::path& cgroup);

// The sorted pids in a cgroup. Empty if the list exceeds 64 KiB, which would be too slow to sample.
std::optional<std::vector<pid_t>> processes_in(const std::filesystem::path& cgroup);

// Memory PSI: the share of the last 10 s in which some or all tasks waited for memory, in 1/100 %.
struct Pressure {
  std::uint32_t some = 0;
  std::uint32_t full = 0;
};
// The pressure of the cgroup if it has its own (v2), else of the machine.
Pressure pressure_of(const std::filesystem::path& cgroup);

// The memory limit of a process' cgroup.

// The tightest limit of the cgroup and its ancestors, version 2 or 1; 0: none, or not visible here.
// `pid` 0: this process.
std::uint64_t cgroup_limit_of(pid_t pid);

}  // namespace oomrec::tools::deaths
