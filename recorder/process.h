// The recorder's life in one process: beginning, fork, exec, end.
#pragma once

namespace oomrec::recorder {

// Where this process' bundles go: absolute, % words expanded.
const char* dump_directory() noexcept;

}  // namespace oomrec::recorder
