// The process' own readings of memory and pressure: the evidence that remains after a kill
// (session::Health).
//
// A figure that cannot be read keeps its old value.
#pragma once

#include "common/limits/ceilings.h"
#include "common/limits/stalls.h"
#include "common/session/layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::limit {

// What changes quickly: resident memory, address space and its limit, the cgroup's working set.
// About 15 µs if a cgroup has a limit. `process`: a pid; 0: the calling process.
void read_quick_health(InHook, const CgroupDirectories&, session::Health&,
                       int process = 0) noexcept;

// The rest, about 100 µs: swap and faults of the process, kills and pressure of cgroup and machine.
StallCounters read_slow_health(InHook, const CgroupDirectories&, session::Health&,
                               int process = 0) noexcept;

// What of the calling process is resident and of no file, and not shared; 0: unknown. About 20 us.
std::uint64_t read_anonymous_bytes(InHook) noexcept;

// Of the rest, only the machine's available memory: about 5 µs.
void read_available_memory(session::Health&) noexcept;

MachinePressure pressure_of(const session::Health&) noexcept;

// The usage of one limit.
struct LimitUsage {
  LimitKind kind = LimitKind::none;
  std::uint64_t used_bytes = 0;       // what the limit counts
  std::uint64_t untouched_bytes = 0;  // allocated but not resident: a limit on resident memory does
                                      // not count it until the program touches it
  std::uint64_t limit_bytes = 0;

  // 0 without a limit.
  unsigned percent() const noexcept {
    if (limit_bytes == 0) return 0;
    const double part = static_cast<double>(used_bytes) / static_cast<double>(limit_bytes);
    return part > 100 ? 10'000 : static_cast<unsigned>(part * 100);
  }
};

// Of the limit at which the kernel kills: the cgroup's.
LimitUsage usage_of_killing_limit(const session::Health&) noexcept;

// Of the two limits at which a GPU's requests fail: --limit-gpu, and the GPU's memory.
LimitUsage usage_of_device_limit(const session::Device&) noexcept;
LimitUsage usage_of_device_memory(const session::Device&) noexcept;

// Of the nearer limit at which requests fail: the soft limit or RLIMIT_AS.
LimitUsage usage_of_failing_limit(const session::Health&, std::uint64_t soft_limit_bytes) noexcept;

}  // namespace oomrec::limit
