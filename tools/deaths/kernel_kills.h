// Finds the kernel's OOM kills in its log, and the kill of a given process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/session/layout.h"
#include "tools/deaths/kernel_log.h"

namespace oomrec::tools::deaths {

struct KernelKill {
  std::uint64_t realtime_ns = 0;
  std::uint64_t pid = 0;  // in the initial pid namespace
  std::string name;       // of the task, at most 15 bytes
  // Whether a cgroup or the machine ran out of memory; none: that line is missing.
  session::KernelLine kind = session::KernelLine::none;
  std::string limited_cgroup;   // the one at its limit; empty: unknown
  std::string cgroup;           // of the process; empty: unknown
  std::uint64_t rss_bytes = 0;  // 0: unknown
  std::string line;             // the log line about the kill
};

// Parses the formats of all kernels since 2.6.32.
std::vector<KernelKill> kills_in(const KernelLog& log);

// A dead process, as its session describes it.
struct KillQuery {
  std::uint64_t pid = 0;
  std::uint64_t helper_pid = 0;     // shares its memory, so the log may name the helper; 0: none
  bool same_pid_namespace = false;  // its pid is of the kernel's, the initial, namespace
  std::vector<std::string> names;
  std::string cgroup;  // as in /proc/self/cgroup; empty: unknown
  std::uint64_t from_realtime_ns = 0, to_realtime_ns = 0;  // it died in between
  std::uint64_t rss_bytes = 0;                             // at its last sample; 0: unknown
  std::uint64_t most_bytes = 0;  // the most that can have become resident since
};

// The kill of this process, or null. Matches pid and name (or cgroup); in another pid namespace,
// cgroup, name and resident size.
const KernelKill* kill_of(const std::vector<KernelKill>& kills, const KillQuery& query);

// Whether there are kills in that time and, as far as the log shows, in that cgroup, but none of
// that pid.
bool only_others_killed(const std::vector<KernelKill>& kills, const KillQuery& query);

}  // namespace oomrec::tools::deaths
