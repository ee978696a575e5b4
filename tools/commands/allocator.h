// Handles failed allocations of the command itself.
#pragma once

#include "tools/base/error.h"

namespace oomrec::tools::commands {

// Call it at the start of main: a failed `new` then throws std::bad_alloc. Before, it ends the
// command with a message.
void throw_from_now_on();

// The exit code after such a failure, which is different for `run`.
Exit failure_exit();

}  // namespace oomrec::tools::commands
