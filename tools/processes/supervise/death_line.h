// What ended a process, in one line for the terminal.
#pragma once

#include <string>
#include <string_view>

#include "tools/bundles/store/source.h"
#include "tools/deaths/ending.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::processes {

// The first clause of a verdict's `summary`, with the pid after the program's name: "python (pid
// 4711) was killed by the kernel: its memory cgroup had reached its limit of 64.0 MiB".
std::string end_of_process(std::string_view summary, std::string_view program, std::int64_t pid);

// The same of a bundle, with the largest holder. Empty unless its process was ended by lack of
// memory, its own or that of a worker, by another process, or by a crash: a failed request that it
// survived has been reported at once.
std::string death_line_of(const bundles::Source& bundle);

// The first line of a recording without a bundle, whose process did not exit by itself.
std::string death_line_of(const recording::Recording&, const deaths::Ending&);

}  // namespace oomrec::tools::processes
