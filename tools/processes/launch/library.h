// Finds liboomrec.so and puts it first in LD_PRELOAD.
#pragma once

#include <string>

namespace oomrec::tools::processes {

// OOMREC_LIBRARY, else beside the command, else in its installation: the library folder, or the
// package of a Python's site-packages. Of several the one that was installed with this command.
// Throws Error with run_failed when there is none.
std::string find_library();

// Whether LD_PRELOAD can hold this path: the loader takes blanks and colons for the end of a name,
// and expands what follows a '$'.
bool is_preloadable(const std::string& path);

// The library by a path that LD_PRELOAD can hold: its own, else a symbolic link to it in a
// directory of this user's below TMPDIR, /tmp or /dev/shm. It is made once and stays: processes
// that outlive `oomrec run` start others. Throws Error with run_failed where no link can be made.
std::string preloadable(const std::string& library);

// The value of LD_PRELOAD with `library` first; what is there stays, in order.
std::string preload_value(const std::string& library, const char* present);

}  // namespace oomrec::tools::processes
