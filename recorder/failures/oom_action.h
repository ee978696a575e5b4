// What the user wants done when memory has run out, in this order and once a process: the bundle, a
// command (--on-oom-exec), then continue, exit or abort (--on-oom).
#pragma once

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// A refusal was recorded, and its bundle written where one was due. Does not return where the
// program is to end.
void act_on_refusal(InHook) noexcept;

// After a fork: the child has its own first refusal.
void forget_action(InHook) noexcept;

}  // namespace oomrec::recorder
