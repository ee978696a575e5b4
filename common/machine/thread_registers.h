// The registers of a stopped thread of another process, and how the kernel restarts the system call
// that the stop has interrupted.
#pragma once

#if defined(__x86_64__)
#include "common/machine/x86_64/thread_registers.h"
#elif defined(__aarch64__)
#include "common/machine/aarch64/thread_registers.h"
#endif
