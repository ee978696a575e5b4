// Finds the kernel's OOM kills in its log, and the kill of a given process.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/session/layout.h"
#include "tools/deaths/kernel_log.h"
#include "tools/deaths/oom_report.h"

namespace oomrec::tools::deaths {

// The inode of the initial pid namespace. Pids in the kernel's log belong to it.
inline constexpr std::uint32_t kInitialPidNamespace = 0xEFFFFFFC;

struct KernelKill {
  std::uint64_t realtime_ns = 0;
  std::uint64_t pid = 0;      // in the initial pid namespace; of a thread if its first has ended
  std::uint64_t process = 0;  // of that thread; 0: the log does not say
  std::string name;           // of the task, at most 15 bytes
  // What ran out of memory; none: that line is missing.
  session::KernelLine kind = session::KernelLine::none;
  std::string limited_cgroup;  // the one at its limit; empty: unknown
  std::string cgroup;          // of the process; empty: unknown
  ResidentMemory resident;
  std::string line;  // the log line about the kill
  // Memory at the kill; null: not logged for this kill, or cut.
  std::shared_ptr<const OomReport> report = {};
};

// Parses the formats of all kernels since 2.6.32.
std::vector<KernelKill> kills_in(const KernelLog& log);

// A dead process, as its session describes it.
struct KillQuery {
  std::uint64_t pid = 0;
  std::uint64_t helper_pid = 0;        // shares its memory, so the log may name the helper; 0: none
  std::vector<std::uint64_t> threads;  // their ids: the log may name one instead of the process
  bool same_pid_namespace = false;     // its pid is of the kernel's, the initial, namespace
  std::vector<std::string> names;
  std::string cgroup;  // as in /proc/self/cgroup; empty: unknown
  std::string host;    // its host's name: in Kubernetes, its pod's
  std::uint64_t from_realtime_ns = 0, to_realtime_ns = 0;  // it died in between
  std::uint64_t clock_error_ns = 0;                        // by which both were widened
  std::uint64_t rss_bytes = 0;                             // at its last sample; 0: unknown
  std::uint64_t most_bytes = 0;  // the most that can have become resident since
};

// Whether two paths may be those of one cgroup: in another cgroup namespace, one may lack its first
// components. Not if one of them is "/", or unknown.
bool is_same_cgroup(std::string_view path, std::string_view other);

// Whether a task of the process has this name, of which the kernel keeps the first 15 bytes.
bool is_named(const KillQuery& query, std::string_view logged);

// The kill of this process, or null. Matches pid and name (or cgroup); in another pid namespace,
// cgroup, name and resident size.
const KernelKill* kill_of(const std::vector<KernelKill>& kills, const KillQuery& query);

// Whether the log names the process by its pid, or that of a thread or helper of it.
bool is_by_pid(const KernelKill& kill, const KillQuery& query);

// Whether there are kills in that time and, as far as the log shows, in that cgroup, but none of
// that pid.
bool only_others_killed(const std::vector<KernelKill>& kills, const KillQuery& query);

// Finds the line with which the kernel logged that a fault ended a process: a signal that nobody
// may have waited for.
//
// x86 logs every fault of a user's process that has no handler, unless debug.exception-trace is 0
// or too many came at once. Signals that a process sends (abort(), kill) are not logged.
struct KernelFault {
  int signal = 0;
  std::uint64_t realtime_ns = 0;
  std::string line;
};

// The fault that ended this process. In another pid namespace than the log's it is not found.
std::optional<KernelFault> fault_of(const KernelLog& log, const KillQuery& query);

}  // namespace oomrec::tools::deaths
