// What the kernel killed in the program's cgroup while it ran, beside recorded processes: a child
// of a shell that could not be recorded. Nobody but that child's parent sees its end.
#pragma once

#include <sys/types.h>

#include <set>
#include <vector>

#include "tools/deaths/kernel_log.h"
#include "tools/processes/launch/program_facts.h"

namespace oomrec::tools::processes {

// The killed processes, oldest first, as far as the kernel's log describes them. `recorded`: those
// that have, or had, a recording. Empty in another pid namespace than the log's.
std::vector<ProgramFacts> unrecorded_kills(const ProgramFacts& program,
                                           const std::set<pid_t>& recorded,
                                           const deaths::KernelLogFile& kernel_log);

}  // namespace oomrec::tools::processes
