// System calls and limits of addresses that are not the same on all machines.
#pragma once

#if defined(__x86_64__)
#include "common/machine/x86_64/system_calls.h"
#elif defined(__aarch64__)
#include "common/machine/aarch64/system_calls.h"
#endif
