// Which processes the kernel killed for memory, by its log, and which of them is a given one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/session/layout.h"
#include "tools/deaths/kernel_log.h"

namespace oomrec::tools::deaths {

struct KernelKill {
  std::uint64_t realtime_ns = 0;
  std::uint64_t pid = 0;  // as the kernel's first pid namespace has it
  std::string name;       // of the task, at most 15 bytes
  // Whose memory had run out; none: the line that says so is lost.
  session::KernelLine kind = session::KernelLine::none;
  std::string limited_cgroup;   // the one at its limit; empty: not said
  std::string cgroup;           // the process' own; empty: not said
  std::uint64_t rss_bytes = 0;  // 0: not said
  std::string line;             // the one that says it was killed
};

// In the words of kernels since 2.6.32.
std::vector<KernelKill> kills_in(const KernelLog& log);

// A process that is gone, as its session knows it.
struct Sought {
  std::uint64_t pid = 0;
  std::uint64_t helper_pid = 0;  // shares its memory: the kernel may have named this; 0: none
  bool pids_agree = false;       // it and the kernel count pids alike
  std::vector<std::string> names;
  std::string cgroup;  // as /proc/self/cgroup had it; empty: not known
  std::uint64_t from_realtime_ns = 0, to_realtime_ns = 0;  // it died in between
  std::uint64_t rss_bytes = 0;                             // when it last looked; 0: not known
  std::uint64_t most_bytes = 0;                            // what could be resident since
};

// The kill that fits, or null: by pid and name (or cgroup); where pids do not agree by cgroup,
// name and resident size.
const KernelKill* kill_of(const std::vector<KernelKill>& kills, const Sought& sought);

// There are kills in that time and, for all that is said, in that cgroup, but none of that pid.
bool only_others(const std::vector<KernelKill>& kills, const Sought& sought);

}  // namespace oomrec::tools::deaths
