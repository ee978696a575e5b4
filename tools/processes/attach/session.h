// Begins and ends the recording of a process that is already running.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace oomrec::tools::processes {

struct Attached {
  pid_t thread = 0;  // that was stopped for it
  std::uint64_t paused_ns = 0;
  std::uint64_t took_ns = 0;
  std::string gpu_problem;  // why GPU memory is not recorded; empty: it is, if there is any
};

// `library`: liboomrec.so as this command sees it; if the process does not, it gets a copy.
// `settings`: OOMREC_* variables. Throws Error.
Attached attach_to(pid_t pid, const std::string& library,
                   const std::vector<std::pair<std::string, std::string>>& settings);

// Throws Error; nothing_found: it is not attached to.
Attached detach_from(pid_t pid);

}  // namespace oomrec::tools::processes
