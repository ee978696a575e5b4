// The process exits by itself.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// Writes the last failure's bundle if it has none yet, completes outcomes, marks the session as
// ended, and removes its file if no reader will need it.
void on_exit(InHook, int status) noexcept;

}  // namespace oomrec::recorder
