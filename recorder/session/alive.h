// The sign of life of a session: a mutex in its header that the kernel marks when its owner ends.
//
// Robust and process-shared: at the end of the thread that holds it, and at exec, the kernel sets
// FUTEX_OWNER_DIED in its first word, whoever else has the file mapped. Nobody ever waits for it.
#pragma once

#include "common/session/layout.h"

namespace oomrec::session {

// Makes the mutex in `header` and holds it, for the calling thread. False: libc would not.
bool begin_life(Header& header) noexcept;

// Takes the mutex over, when the thread that held it has ended. An atomic operation.
void go_on_living(Header& header) noexcept;

// In the child of a fork: whether this thread's list of held mutexes still leads into the parent's
// session. libc's fork empties the list, a raw clone does not: then the page must stay mapped.
bool may_still_be_linked() noexcept;

}  // namespace oomrec::session
