// Where the kernel returns to from a signal handler that was installed without the C library.
//
// Only one source may include it: the code is emitted there.
#pragma once

#if defined(__x86_64__)
#include "common/machine/x86_64/signal_return.h"
#elif defined(__aarch64__)
#include "common/machine/aarch64/signal_return.h"
#endif
