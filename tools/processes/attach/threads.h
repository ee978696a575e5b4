// A process and its threads, as /proc says.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace oomrec::tools::processes {

// A field of /proc/PID/status or of a thread's; empty: there is none. `proc`: where procfs is
// mounted.
std::string status_field(pid_t pid, std::string_view name, std::string_view proc = "/proc");

// Whether a thread, or a process of one thread, has ended or is a zombie.
bool has_ended(pid_t thread);

// Zombies, too.
std::vector<pid_t> threads_of(pid_t pid);

// Those that have not ended, first those that notice a stop least: one that sleeps is kept from
// nothing. Empty: the process has ended.
std::vector<pid_t> threads_by_cost(pid_t pid);

}  // namespace oomrec::tools::processes
