#include <fmt/format.h>

#include <algorithm>

#include "tools/deaths/cgroup_limit.h"
#include "tools/processes/observe/meminfo.h"
#include "tools/processes/observe/observed.h"

namespace oomrec::tools::processes {

std::uint64_t host_total_bytes(pid_t pid) {
  const std::uint64_t ram = read_meminfo().total_bytes;
  const std::uint64_t limit = deaths::cgroup_limit_of(pid);
  return limit != 0 ? std::min(ram, limit) : ram;
}

}  // namespace oomrec::tools::processes
