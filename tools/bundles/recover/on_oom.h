// Runs the user's command (--on-oom-exec) for a process that died of memory before it could run the
// command itself. As in the process, the command gets the pid and the bundle as "$1" and "$2", as
// OOMREC_PID and OOMREC_BUNDLE, and for %p and %b (common/text/expand.h).
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "common/session/layout.h"

namespace oomrec::tools::bundles {

// Whether the process died of memory without having run its command.
bool needs_on_oom_command(const std::filesystem::path& bundle);

struct OnOomCommand {
  std::string text;  // %p: the process, %b: the bundle, %%: a percent sign; empty: none
  std::vector<std::pair<std::string, std::string>> environment = {};  // besides ours
};

// Runs the command with sh, its output on our stderr, and waits for it.
void run_on_oom(const OnOomCommand& command, const std::filesystem::path& bundle);

// The same without waiting: init reaps it.
void start_on_oom(const OnOomCommand& command, const std::filesystem::path& bundle);

}  // namespace oomrec::tools::bundles
