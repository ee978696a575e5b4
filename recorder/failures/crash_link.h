// What links a crash to its thread's last failed request (session::CrashLink), from the thread's
// stack, its code, its counters and the C++ runtime's list of exceptions.
#pragma once

#include "common/session/layout.h"
#include "common/system/hook_scope.h"
#include "recorder/stack/stack.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

// `progress`: since the failed call. Sets flags of the crash, too: those that names decide.
void fill_in_link(InHook, session::CrashLink&, session::Crash&, const ThreadState&,
                  const stack::Progress&) noexcept;

}  // namespace oomrec::recorder
