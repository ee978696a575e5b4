// The limits on a process that leave no room for the recorder in it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace oomrec::tools::processes {

// Throws Error: its cgroup is so full that the kernel would kill a process for the recorder's first
// MiB.
void require_room_in_cgroup(pid_t pid);

// A resource limit that is used up, as far as /proc tells.
struct UsedUpLimit {
  std::string what;    // "its address space may be 40.0 MiB (RLIMIT_AS), and 39.9 MiB are in use"
  std::string remedy;  // a command that raises it from outside
};
std::optional<UsedUpLimit> used_up_limit(pid_t pid);

}  // namespace oomrec::tools::processes
