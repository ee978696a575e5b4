// Lines for the user, on the program's stderr: never waits, never raises a signal, and writes to
// nothing but the file that was stderr when the program started.
#pragma once

#include <string_view>

#include "common/system/hook_scope.h"

namespace oomrec::helper {

// Which file descriptor 2 is (device and inode). Called once, at the start.
void remember_standard_error() noexcept;

// Writes `text` when descriptor 2 is still that file and takes it at once; else the lines are lost.
// At most 4 KiB, so that a pipe takes it whole. False: not written.
bool say(InHook, std::string_view text) noexcept;

}  // namespace oomrec::helper
