// Whether a program can be recorded, and the environment that it needs.
#pragma once

#include <string>

#include "tools/processes/launch/options.h"
#include "tools/processes/launch/process.h"

namespace oomrec::tools::processes {

// Why the program at `path` cannot be recorded, to print after its name; empty: it can be.
std::string why_unrecordable(const std::string& path);

// Whether programs that it starts, or executes itself, can be: a statically linked one, such as
// gosu or dumb-init, has no use for LD_PRELOAD and passes it on. Other C libraries and sanitizers
// would trip over it.
bool preloads_its_children(const std::string& path);

// For a program that cannot be recorded: which of the given options have no effect, as the recorder
// would do their work in the program, and what to use instead of --limit. One line; empty: none.
std::string options_without_effect(const Options&);

// Why no bundle can be written to the dump directory that the user named, in one line; empty: it
// can, or the directory's name depends on the process ("%p"), or is the default.
std::string dump_directory_problem(const Options&);

// LD_PRELOAD, OOMREC_* and PYTHONMALLOC for these options.
Settings recording_settings(const RunOptions& options);

}  // namespace oomrec::tools::processes
