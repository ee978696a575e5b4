// The user's actions when memory has run out, once per process and in this order: the bundle, a
// command (--on-oom-exec), then continue, exit or abort (--on-oom).
#pragma once

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// Call after a failure is recorded and its bundle, if one was due, is written. Does not return if
// the program is to end.
void act_on_failure(InHook) noexcept;

// The child may act again on its own first failure.
void reset_oom_action_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
