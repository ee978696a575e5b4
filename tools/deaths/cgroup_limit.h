// The memory limit of a process' cgroup.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace oomrec::tools::deaths {

// The tightest limit of the cgroup and its ancestors, version 2 or 1; 0: none, or not visible here.
// `pid` 0: this process.
std::uint64_t cgroup_limit_of(pid_t pid);

}  // namespace oomrec::tools::deaths
