// Writes lines to the program's stderr: never blocks, never raises a signal, and writes only to the
// file that was stderr when the program started.
#pragma once

#include <string_view>

#include "common/system/hook_scope.h"

namespace oomrec::helper {

// Records which file descriptor 2 is (device and inode). Called once, at the start.
void record_standard_error() noexcept;

// Writes `text` if descriptor 2 is still that file and is writable without blocking; otherwise
// drops it. At most 4 KiB, so that a write to a pipe is atomic. False: not written.
bool write_stderr(InHook, std::string_view text) noexcept;

}  // namespace oomrec::helper
