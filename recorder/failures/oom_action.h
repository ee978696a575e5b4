// What the user wants done when memory has run out, in this order and once a process: the bundle, a
// command (--on-oom-exec), then continue, exit or abort (--on-oom).
#pragma once

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// A failure was recorded, and its bundle written where one was due. Does not return where the
// program is to end.
void act_on_failure(InHook) noexcept;

// After a fork: the child has its own first failure.
void reset_oom_action_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
