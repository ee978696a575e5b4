// The process ends by its own will.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// Writes the last failure's bundle if it is in none yet,
// completes outcomes, marks the session and removes its file when nobody needs it.
void on_exit(InHook, int status) noexcept;

}  // namespace oomrec::recorder
