// Remarks on stderr: what a command did besides what it was asked. Errors are error.h's.
#pragma once

#include <string>

namespace oomrec::tools {

// "oomrec: TEXT" on stderr, clipped to no width: one line.
void remark(const std::string& text);

}  // namespace oomrec::tools
