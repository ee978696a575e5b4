// For sources in assembly: jumps with unchanged arguments, and the oldest versions that the C
// library's functions have on this machine.
#pragma once

#if defined(__x86_64__)
#include "common/machine/x86_64/assembly.h"
#elif defined(__aarch64__)
#include "common/machine/aarch64/assembly.h"
#endif
