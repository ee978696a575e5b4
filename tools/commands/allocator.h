// What the command does where its own memory runs out.
#pragma once

#include "tools/base/error.h"

namespace oomrec::tools::commands {

// From now on std::bad_alloc is thrown; before, the command ends with a line on stderr.
void main_begins();

// The exit code of a command that could not do its work: `run` has one of its own.
Exit failed();

}  // namespace oomrec::tools::commands
