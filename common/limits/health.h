// How the process fares: what is left as evidence when it is killed (session::Health).
//
// Where a figure cannot be read it stays as it was.
#pragma once

#include "common/limits/ceilings.h"
#include "common/session/layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::limit {

// What changes quickly, some 15 µs where a cgroup has a limit: resident, address space and its
// limit, the cgroup's working set.
// `process`: 0 is the calling one.
void look_quickly(InHook, const CgroupPlace&, session::Health&, int process = 0) noexcept;

// All else, some 100 µs: swap and faults of the process, kills and pressure of cgroup and machine.
void look_thoroughly(InHook, const CgroupPlace&, session::Health&, int process = 0) noexcept;

// Whether memory is what everybody waits for (full), and this process among them: it has had so
// many major faults since it looked last.
inline constexpr std::uint32_t kThrashingFull = 2000;  // PSI avg10, in 1/100 %
inline constexpr std::uint64_t kThrashingFaults = 500;

// How near a process is to what bounds it.
struct Nearness {
  LimitKind kind = LimitKind::none;
  std::uint64_t used_bytes = 0;
  std::uint64_t expected_bytes = 0;  // allocated, but not yet resident: will be used when touched
  std::uint64_t limit_bytes = 0;

  std::uint64_t sum_bytes() const noexcept { return used_bytes + expected_bytes; }
  // 0 without a limit.
  unsigned percent() const noexcept {
    if (limit_bytes == 0) return 0;
    const double part = static_cast<double>(sum_bytes()) / static_cast<double>(limit_bytes);
    return part > 100 ? 10'000 : static_cast<unsigned>(part * 100);
  }
};

// Of a limit whose crossing kills: the cgroup's.
Nearness nearness_to_kill(const session::Health&) noexcept;

// Of a GPU, both of which refuse: --limit-gpu, and the memory that it has.
Nearness nearness_to_limit(const session::Device&) noexcept;
Nearness nearness_to_full(const session::Device&) noexcept;

// Of a limit whose crossing is refused: the soft limit or RLIMIT_AS, whichever is nearer.
Nearness nearness_to_refusal(const session::Health&, std::uint64_t soft_limit_bytes) noexcept;

}  // namespace oomrec::limit
