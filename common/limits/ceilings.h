// What bounds this process' memory, and how near it is: evidence for a verdict.
//
// Read from the kernel at a refusal (some 50 µs; not on the way of every event). 0: not known;
// kUnlimited: no limit. Roots are recorder/system's, so that tests bring their own /proc and
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

// The parts, one by one.

// VmSize, VmData and VmRSS of /proc/self/status.
void read_usage(InHook, Ceilings&) noexcept;

// Where the memory cgroup of the process is, for those who look again.
struct CgroupPlace {
  char own[384];       // directory of its own cgroup; empty: none is known
  char limiting[384];  // of the one whose limit is the lowest, its own or an ancestor's
  char named[384];     // as /proc/self/cgroup names its own
  bool v1;
};

// The cgroup of the process with the lowest limit among it and its ancestors, v1 or v2. Where
// /proc/self/cgroup names a path that is not visible here (a container without a namespace of its
// own) the mounted root is what binds. `place`: filled in as well.
void read_cgroup(InHook, Ceilings&, CgroupPlace* place = nullptr) noexcept;

// The working set of the cgroup with the lowest limit, looked up again. False: it is gone.
bool read_cgroup_usage(InHook, const CgroupPlace&, std::uint64_t& used_bytes) noexcept;

// How often the kernel has killed in its own cgroup. False: not known.
bool read_cgroup_kills(InHook, const CgroupPlace&, std::uint64_t& kills) noexcept;

}  // namespace oomrec::limit
