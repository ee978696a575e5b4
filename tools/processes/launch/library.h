// Finds liboomrec.so and puts it first in LD_PRELOAD.
#pragma once

#include <string>

namespace oomrec::tools::processes {

// OOMREC_LIBRARY, else beside the command, else in its installation: the library directory, or a
// Python package in site-packages. Of several, the one that was installed with this command. Throws
// Error with run_failed if there is none.
std::string find_library();

// Whether LD_PRELOAD can hold this path: the loader splits it at blanks and colons, and expands
// '$'.
bool is_preloadable(const std::string& path);

// A path of the library that LD_PRELOAD can hold: its own, else a symbolic link in a directory of
// this user below TMPDIR, /tmp or /dev/shm. The link is never removed: processes that outlive
// `oomrec run` may start others. Throws Error with run_failed if no link can be created.
std::string preloadable_path(const std::string& library);

// The value of LD_PRELOAD: `library`, then the libraries already in `present`, in their order.
std::string preload_value(const std::string& library, const char* present);

}  // namespace oomrec::tools::processes
