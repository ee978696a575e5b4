// Remarks on stderr, for events that do not fail the command (those are in error.h).
#pragma once

#include <string>

namespace oomrec::tools {

// Prints the line "oomrec: TEXT" on stderr, not clipped.
void remark(const std::string& text);

}  // namespace oomrec::tools
