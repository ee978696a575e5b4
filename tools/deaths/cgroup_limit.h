// The memory that the cgroup of a process may have.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace oomrec::tools::deaths {

// The tightest limit on the way from its cgroup up to the root, version 2 or 1; 0: none, or it
// cannot be seen. `pid` 0: this process.
std::uint64_t cgroup_limit_of(pid_t pid);

}  // namespace oomrec::tools::deaths
