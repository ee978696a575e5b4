// Reads /proc/meminfo.
#pragma once

#include <cstdint>

namespace oomrec::tools::processes {

struct Meminfo {
  std::uint64_t total_bytes = 0, available_bytes = 0;
  std::uint64_t swap_total_bytes = 0, swap_free_bytes = 0;

  std::uint64_t used_bytes() const {
    return total_bytes > available_bytes ? total_bytes - available_bytes : 0;
  }
};
Meminfo read_meminfo();

}  // namespace oomrec::tools::processes
