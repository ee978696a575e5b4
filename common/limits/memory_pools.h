// Memory that the system sets aside: locked memory (RLIMIT_MEMLOCK) and the pools of huge pages.
//
// Read from the kernel after such a request has failed. Paths start at system::g_roots.
#pragma once

#include <cstdint>

#include "common/session/layout.h"
#include "common/system/hook_scope.h"

namespace oomrec::limit {

// Which of them the failed request needed.
struct PoolsNeeded {
  bool locked = false;
  bool huge_pages = false;
  std::uint64_t huge_page_bytes = 0;  // 0: the machine's default
};

// MemAvailable is read in any case.
void read_memory_pools(InHook, const PoolsNeeded&, session::MemoryPools&) noexcept;

}  // namespace oomrec::limit
