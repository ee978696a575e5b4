// Guard regions of this process' memory (madvise(MADV_GUARD_INSTALL), Linux 6.13), by which glibc
// 2.42 and newer protects the end of a thread's stack. /proc/self/maps shows none of them:
// adjoining stacks are one mapping there. /proc/self/pagemap finds them, from Linux 6.15 on.
#pragma once

#include <cstdint>

namespace oomrec::system {

struct GuardRegion {
  std::uint64_t start, end;
};

// The first guard region of these pages; false: they have none, or it is unknown. Costs a look at
// each page that is in memory before it. Keeps no descriptor: a process may have few.
bool find_guard_region(std::uint64_t start, std::uint64_t end, GuardRegion&) noexcept;

}  // namespace oomrec::system
