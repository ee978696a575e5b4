// Which allocator serves malloc() in a recorded process.
#pragma once

#include <string>

#include "tools/recording/reading/recording.h"

namespace oomrec::tools::recording {

// "glibc", "jemalloc", or the name of a file that is not known, printable. Where that was not
// recorded, by the modules that are named like an allocator, else "glibc".
std::string allocator_of(const Recording&);

}  // namespace oomrec::tools::recording
