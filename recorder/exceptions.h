// What the program says of its exceptions; recorder.h has what it calls.
#pragma once

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// After a fork.
void forget_exceptions(InHook) noexcept;

}  // namespace oomrec::recorder
