// A look at the pages of a process that its cgroup has paused, entered in its session as if it had
// looked itself (recorder/state/looks.h): the pages as they are when it is killed.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace oomrec::tools::recording {

// False: its session has no memory for it (the process began without a limit of its cgroup, and has
// never looked), or its pages or its session may not be read. `session`: of a process that does not
// run; `pid`: in our namespace.
bool enter_look(const std::filesystem::path& session, pid_t pid);

}  // namespace oomrec::tools::recording
