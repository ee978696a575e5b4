// Tells ThreadSanitizer that a lane's state passes from a thread that has exited to the next one.
//
// The kernel orders the two: the second thread takes the lane because it has learnt from the kernel
// that the first has exited. ThreadSanitizer does not know that. In other builds these do nothing.
#pragma once

#ifdef OOMREC_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace oomrec::recorder {

#ifdef OOMREC_THREAD_SANITIZER
// The calling thread has written to it, perhaps for the last time.
inline void leave(void* state) noexcept { __tsan_release(state); }
// Its thread has exited.
inline void take_over(void* state) noexcept { __tsan_acquire(state); }
#else
inline void leave(void*) noexcept {}
inline void take_over(void*) noexcept {}
#endif

}  // namespace oomrec::recorder
