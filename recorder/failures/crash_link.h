// What links a crash to a failed request (session::CrashLink): its thread's last or, if there was
// none, the process' last. From the thread's stack, the program's code, the counters of served
// requests and the C++ runtime's list of exceptions.
#pragma once

#include "common/session/layout.h"
#include "common/system/hook_scope.h"
#include "recorder/stack/stack.h"
#include "recorder/state/thread_state.h"

namespace oomrec::recorder {

// The failed call, and what is left of its stack.
struct CallBeforeCrash {
  const FailedRequest& failed;
  const FailedCall& call;
  int signal;  // of the crash
  std::uint64_t served_since;
  bool by_other_thread;  // then nothing is known of its stack
  stack::Progress progress;
};

// Sets flags of the crash, too: those that names decide.
void fill_in_link(InHook, session::CrashLink&, session::Crash&, const CallBeforeCrash&) noexcept;

}  // namespace oomrec::recorder
