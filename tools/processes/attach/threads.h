// The threads of a process.
#pragma once

#include <sys/types.h>

#include <vector>

namespace oomrec::tools::processes {

// Empty: it has ended.
std::vector<pid_t> threads_of(pid_t pid);

// The same, first those that notice a stop least: one that sleeps is kept from nothing.
std::vector<pid_t> threads_by_cost(pid_t pid);

}  // namespace oomrec::tools::processes
