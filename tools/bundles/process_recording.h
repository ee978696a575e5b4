// The recording of a running process, by its number.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "tools/analysis/recording.h"

namespace oomrec::tools {

// The number that `word` is; nothing where it is no process' number.
std::optional<std::int32_t> pid_in(const std::string& word);

// The session file of a process that is recorded, wherever this command would look for sessions.
// Throws Error with nothing_found: there is no such process, or it is not recorded.
std::filesystem::path session_of_process(std::int32_t pid);

}  // namespace oomrec::tools
