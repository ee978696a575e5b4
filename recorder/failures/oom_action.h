// What the user wants done when memory has run out, once a process and in this order: the bundle, a
// command
// (--on-oom-exec), then continue, exit or abort (--on-oom).
#pragma once

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// A failure is on record, with its bundle if one was due. Does not return where the program is to
// end.
void act_on_failure(InHook) noexcept;

// The child has a first failure of its own.
void reset_oom_action_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
