// The objects that Python's garbage collector tracks in an attached process, by type.
#pragma once

#include <sys/types.h>

#include "tools/recording/reading/object_counts.h"

namespace oomrec::tools::processes {

// Throws Error: it is not attached to, it is not Python, or its main thread runs no Python code
// now.
recording::ObjectCounts count_objects(pid_t pid);

}  // namespace oomrec::tools::processes
