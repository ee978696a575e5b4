// The user's command for a process that the kernel, or somebody before it, killed for its memory
// (--on-oom-exec): what the process itself could not run any more.
#pragma once

#include <filesystem>
#include <string>

#include "common/session/layout.h"

namespace oomrec::tools::bundles {

// Whether the bundle tells of a kill for memory, and the process has not run its command itself.
bool is_kill_for_memory(const std::filesystem::path& bundle);

// Runs `command` by sh, its output on our stderr: %p the process, %b the bundle, %% a percent sign.
// Waits for its end where `wait` is set; else the kernel reaps it.
void run_on_oom(const std::string& command, const std::filesystem::path& bundle, bool wait);

}  // namespace oomrec::tools::bundles
