// The user's command, when memory has run out (--on-oom-exec): by the helper, so that the program
// has neither a copy of itself nor a child of its own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oomrec::helper {

// Room that is reserved before it is needed.
struct CommandSpace {
  char text[4096];       // the command, % words expanded
  char variables[2048];  // of its environment: NAME=value, NUL-terminated one after the other
  char* environment[8];  // into `variables`
  alignas(16) char stack[8192];
};

// Keeps what the command gets of the program's environment: PATH, HOME, USER, LANG and TMPDIR, and
// not the recorder. `environment` as main() gets it; null: none.
void keep_environment(const char* const* environment, CommandSpace&) noexcept;

// Starts `sh -c` with space.text, stdin from /dev/null and stdout to stderr; waits for its end, at
// most `seconds`. In the helper only: it becomes a child of the calling process.
void run_command(CommandSpace&, unsigned seconds) noexcept;

}  // namespace oomrec::helper
