// The recorder's life in one process: beginning, fork, exec, end.
#pragma once

namespace oomrec::recorder {

// Where this process' bundles go as it was started: absolute, % words expanded. See dumps.h.
const char* dump_directory() noexcept;

}  // namespace oomrec::recorder
