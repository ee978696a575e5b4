// Finds liboomrec.so and puts it first in LD_PRELOAD.
#pragma once

#include <string>

namespace oomrec::tools {

// OOMREC_LIBRARY, else beside the command, else in the library folder of its installation. Throws
// Error with run_failed when there is none, or when the loader could not read its path from
// LD_PRELOAD (a blank or a colon in it).
std::string find_library();

// The value of LD_PRELOAD with `library` first; what is there stays, in order.
std::string preload_value(const std::string& library, const char* present);

}  // namespace oomrec::tools
