// The process ends by itself: by exit(), by abort(), at a limit of its runtime, or as the user
// wants it to when memory has run out.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// Writes the last failure's bundle if it has none yet, completes outcomes, marks the session as
// ended, and removes its file if no reader will need it.
void on_exit(InHook, int status) noexcept;

// The program calls abort(). At a runtime's limit the signal that follows writes the bundle
// (crash.h).
void on_abort(InHook) noexcept;

// PHP leaves a script by longjmp(). If its memory limit is the reason, writes a bundle; the process
// may live on (a worker that serves requests).
void on_php_bailout(InHook) noexcept;

// The user's actions when memory has run out, once per process and in this order: the bundle, a
// command (--on-oom-exec), then continue, exit or abort (--on-oom). Call after a failure is
// recorded and its bundle, if one was due, is written. Does not return if the program is to end.
void act_on_failure(InHook) noexcept;

// The child may act again on its own first failure.
void reset_oom_action_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
