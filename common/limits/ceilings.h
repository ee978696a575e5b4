// The limits on this process' memory, and how near it is to them: evidence for a verdict.
//
// Read from the kernel when an allocation fails (about 50 µs, not on each event). 0: unknown;
// kUnlimited: no limit. Paths start at system::g_roots, so that tests provide their own /proc and
// cgroups.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::limit {

struct Ceilings {
  std::uint64_t vm_bytes = 0;  // address space in use
  std::uint64_t rlimit_as_bytes = 0;
  std::uint64_t data_bytes = 0;  // private writable mappings, as RLIMIT_DATA counts
  std::uint64_t rlimit_data_bytes = 0;
  std::uint64_t rss_bytes = 0;
  std::uint64_t ram_bytes = 0;
  std::uint64_t swap_bytes = 0;
  std::uint64_t cgroup_used_bytes = 0;  // working set: usage − inactive file pages
  std::uint64_t cgroup_limit_bytes = 0;
};

Ceilings read_ceilings(InHook) noexcept;

// The parts of read_ceilings():

// VmSize, VmData and VmRSS of /proc/self/status.
void read_usage(InHook, Ceilings&) noexcept;

// The directories of the process' memory cgroup, cached for later readings.
struct CgroupDirectories {
  char own[384];       // directory of its own cgroup; empty: unknown
  char limiting[384];  // of the one with the lowest limit, its own or an ancestor's
  char named[384];     // name of its own in /proc/self/cgroup
  bool v1;
};

// Reads the cgroup with the lowest limit among the process' own and its ancestors, v1 or v2. If the
// path in /proc/PID/cgroup is not visible here (a container without its own cgroup namespace), the
// mounted root is what limits the process. Also fills `directories`, if given. `process`: a pid; 0:
// the calling process.
void read_cgroup(InHook, Ceilings&, CgroupDirectories* directories = nullptr,
                 int process = 0) noexcept;

// Of the cgroup with the lowest limit, reads the working set or the limit again. False: it is gone.
bool read_cgroup_usage(InHook, const CgroupDirectories&, std::uint64_t& used_bytes) noexcept;
bool read_cgroup_limit(InHook, const CgroupDirectories&, std::uint64_t& limit_bytes) noexcept;

// The number of the kernel's kills in the process' own cgroup. False: unknown.
bool read_cgroup_kills(InHook, const CgroupDirectories&, std::uint64_t& kills) noexcept;

}  // namespace oomrec::limit
