// A signal that ends the process: recorded in the session (session::Crash), and in the bundle of
// the failure that it follows from.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// From the handler, with every signal blocked. Once a process: a second thread that crashes
// meanwhile waits until the first is reported. Does nothing without a session, or in a vfork child.
// Takes as long as report_crash().
void on_crash(InHook, int signal, const siginfo_t&, const ucontext_t& interrupted) noexcept;

void reset_crash_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
