// A lane's state passes from a thread that has ended to the next one.
//
// What the first has written the second sees: the kernel told it that the first had ended.
// ThreadSanitizer does not know what the kernel orders, and is told here; in other builds these do
// nothing.
#pragma once

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace oomrec::recorder {

#ifdef __SANITIZE_THREAD__
// The calling thread is done with it, for the last time perhaps.
inline void leave(void* state) noexcept { __tsan_release(state); }
// The thread that had it has ended.
inline void take_over(void* state) noexcept { __tsan_acquire(state); }
#else
inline void leave(void*) noexcept {}
inline void take_over(void*) noexcept {}
#endif

}  // namespace oomrec::recorder
