// Whether a process waits for memory: the one model behind memory_pressure, deaths under pressure,
// and the choice of `oomrec watch`.
//
// Pressure of the machine says nothing about one of its processes: another one, in another cgroup,
// may be the only one that waits. What counts is what this process does, namely major faults or
// waiting for the disk, while its own cgroup needs evicted pages again or waits. The machine's
// pressure replaces the cgroup's only if the process itself faults. No fault is
// needed where all tasks of its cgroup wait: above memory.high the kernel makes them sleep.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/limits/ceilings.h"
#include "common/session/evidence.h"
#include "common/system/hook_scope.h"

namespace oomrec::limit {

// Counters that only grow, and the cgroup's pressure now. What cannot be read stays 0.
struct StallCounters {
  std::uint64_t time_ns = 0;  // monotonic; 0: not read
  std::uint64_t major_faults = 0;
  std::uint64_t children_faults = 0;  // minor ones, of children that have ended: 0: there were none
  std::uint64_t blocked_ns = 0;
  std::uint64_t cgroup_refaults = 0;
  std::uint32_t cgroup_some = 0, cgroup_full = 0;
};

// About 40 µs. `process`: a pid; 0: the calling process.
StallCounters read_stall_counters(InHook, const CgroupDirectories&, int process = 0) noexcept;

session::Stalls stalls_between(const StallCounters& before, const StallCounters& now) noexcept;

// PSI avg10 of the machine's memory, or of the process' cgroup if the kernel has it, in 1/100 %.
struct MachinePressure {
  std::uint32_t some = 0, full = 0;
};

// It noticeably waits for memory: enough that it cannot be ruled out as the reason of a signal.
bool is_stalled(const session::Stalls&, const MachinePressure&) noexcept;

// It waits instead of working: a bundle is due.
bool is_thrashing(const session::Stalls&, const MachinePressure&) noexcept;

// "12.34", as in PSI, in hundredths.
std::uint32_t hundredths(std::string_view text) noexcept;

// Orders processes by how much they wait.
std::uint64_t faults_per_second(const session::Stalls&) noexcept;

}  // namespace oomrec::limit
