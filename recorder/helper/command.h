// Runs the user's command when memory has run out (--on-oom-exec). The helper starts it, so that
// the program is not copied and gets no child.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace oomrec::helper {

// As an argument of a system call.
inline long address(const void* pointer) noexcept { return reinterpret_cast<long>(pointer); }

// Reserved at start: there is no memory left when it is needed.
struct CommandSpace {
  char text[8192];        // the command, % words expanded
  char pid[32];           // OOMREC_PID=…
  char bundle[4200];      // OOMREC_BUNDLE=…
  char variables[2048];   // of its environment: NAME=value, NUL-terminated one after the other
  char* environment[10];  // into `variables`, then `pid` and `bundle`
  alignas(16) char stack[8192];
};

// Copies the command's part of the program's environment: PATH, HOME, USER, LANG and TMPDIR. Not
// LD_PRELOAD: the command runs without the recorder. `environment` as main() gets it, or null.
void keep_environment(const char* const* environment, CommandSpace&) noexcept;

// Sets the command to `pattern`, its % words expanded (common/text/expand.h), and tells it of the
// process and of its bundle by OOMREC_PID and OOMREC_BUNDLE. False: too long.
bool set_command(std::string_view pattern, int pid, std::string_view bundle,
                 CommandSpace&) noexcept;

// Runs `sh -c` with space.text, the pid and the bundle as "$1" and "$2", stdin from /dev/null,
// stdout to stderr; waits at most `seconds` for its end. Call it in the helper only: the command
// becomes a child of the calling process.
void run_command(CommandSpace&, unsigned seconds) noexcept;

}  // namespace oomrec::helper
