// A signal that ends the process, recorded on its way: session::Crash, and the bundle of the
// failure that it follows from.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// From the handler, with every signal blocked. Once a process; a second thread that crashes
// meanwhile waits here until the first is told. Nothing for a process that has no session, or is
// another than the session's (a vfork child). Takes as long as report_crash().
void on_crash(InHook, int signal, const siginfo_t&, const ucontext_t& interrupted) noexcept;

void reset_crash_after_fork(InHook) noexcept;  // after a fork

}  // namespace oomrec::recorder
