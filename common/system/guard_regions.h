// Guard regions of this process' memory (madvise(MADV_GUARD_INSTALL), Linux 6.13), by which glibc
// 2.42 and newer protects the end of a thread's stack. /proc/self/maps shows none of them:
// adjoining stacks are one mapping there. /proc/self/pagemap finds them, from Linux 6.15 on.
#pragma once

#include <cstdint>

#include "common/system/files.h"

namespace oomrec::system {

class GuardRegions {
 public:
  struct Region {
    std::uint64_t start, end;
  };

  GuardRegions() noexcept;

  // The first guard region of these pages; false: they have none, or it is unknown. Costs a look
  // at each page that is in memory.
  bool find(std::uint64_t start, std::uint64_t end, Region&) const noexcept;

 private:
  const File file_;
};

}  // namespace oomrec::system
