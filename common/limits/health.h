// The process' own readings of memory and pressure: the evidence that remains after a kill
// (session::Health).
//
// A figure that cannot be read keeps its old value.
#pragma once

#include "common/limits/ceilings.h"
#include "common/session/layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::limit {

// What changes quickly: resident memory, address space and its limit, the cgroup's working set.
// About 15 µs if a cgroup has a limit. `process`: a pid; 0: the calling process.
void read_quick_health(InHook, const CgroupDirectories&, session::Health&,
                       int process = 0) noexcept;

// The rest, about 100 µs: swap and faults of the process, kills and pressure of cgroup and machine.
void read_slow_health(InHook, const CgroupDirectories&, session::Health&, int process = 0) noexcept;

// Thresholds of thrashing: all tasks wait for memory (full), and this process had at least so many
// major faults since its last check.
inline constexpr std::uint32_t kThrashingFull = 2000;  // PSI avg10, in 1/100 %
inline constexpr std::uint64_t kThrashingFaults = 500;

// The usage of one limit.
struct LimitUsage {
  LimitKind kind = LimitKind::none;
  std::uint64_t used_bytes = 0;
  std::uint64_t expected_bytes = 0;  // allocated but not yet resident
  std::uint64_t limit_bytes = 0;

  std::uint64_t sum_bytes() const noexcept { return used_bytes + expected_bytes; }
  // 0 without a limit.
  unsigned percent() const noexcept {
    if (limit_bytes == 0) return 0;
    const double part = static_cast<double>(sum_bytes()) / static_cast<double>(limit_bytes);
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
