// What the kernel killed of this run, beside recorded processes: a child of a shell that could not
// be recorded. Only that child's parent can wait for it.
#pragma once

#include <sys/types.h>

#include <set>
#include <vector>

#include "tools/deaths/death_observer.h"
#include "tools/processes/supervise/descendants.h"
#include "tools/processes/supervise/program_facts.h"

namespace oomrec::tools::processes {

struct UnrecordedKill {
  ProgramFacts facts;
  deaths::DeathObservation observed;
};

// The killed processes, oldest first: the descendants that the kernel's log names, and those that
// it names in the program's cgroup if no other program was in it. The log omits reports if there
// are many: then the descendant that ended while the cgroup's counter rose, if it was by far the
// largest and no other program was in the cgroup. `recorded`: those that have, or had, a recording.
// `observed`: of the program, which has ended. Empty in another pid namespace than the log's.
std::vector<UnrecordedKill> unrecorded_kills(const ProgramFacts& program,
                                             const Descendants& descendants,
                                             const std::set<pid_t>& recorded,
                                             const deaths::DeathObservation& observed);

}  // namespace oomrec::tools::processes
