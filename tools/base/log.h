// Remarks on stderr, for events that do not fail the command (those are in error.h).
#pragma once

#include <string>
#include <string_view>

namespace oomrec::tools {

// Whatever a command says there, it says in vain where stderr is closed or full, or a pipe without
// a reader: no exception, and no SIGPIPE. The exit code of a program that `oomrec run` has started
// must be returned.
void write_stderr(std::string_view text) noexcept;

// Prints the line "oomrec: TEXT" on stderr, not clipped.
void remark(const std::string& text);

}  // namespace oomrec::tools
