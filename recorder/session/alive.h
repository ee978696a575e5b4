// A session's sign of life: a mutex in its header that the kernel marks when its owner ends.
//
// Robust and process-shared: when the owning thread ends, and at exec, the kernel sets
// FUTEX_OWNER_DIED in the first word, which every process that maps the file sees. No thread ever
// waits for it.
#pragma once

#include "common/session/layout.h"

namespace oomrec::session {

// Initializes the mutex in `header` and locks it for the calling thread. False: libc refused.
bool start_life(Header& header) noexcept;

// The same where there is no libpthread, in a program without threads on a glibc before 2.34.
bool lock_without_libpthread(Header& header) noexcept;

// Locks the mutex again if the owning thread has ended. One atomic operation.
void renew_life(Header& header) noexcept;

// The session has ended: unlocks the mutex if this thread has it. False: another thread has it,
// whose list of robust mutexes leads to the header, so its page must stay mapped until
// release_kept().
bool end_life(Header& header) noexcept;

// Keeps the page of such a header, and unmaps it in a later call, by the same thread or after that
// one's end. So there are never more of them than threads that have called start_life().
void keep_for_owner(Header& header) noexcept;
void release_kept() noexcept;

// In the child of a fork: whether this thread's list of robust mutexes may still point into the
// parent's session. libc's fork empties the list, a raw clone does not: then the page must stay
// mapped.
bool robust_list_in_use() noexcept;

}  // namespace oomrec::session
