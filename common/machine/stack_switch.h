// Calls a function on another stack, in this process or in one that shares its memory.
#pragma once

#if defined(__x86_64__)
#include "common/machine/x86_64/stack_switch.h"
#elif defined(__aarch64__)
#include "common/machine/aarch64/stack_switch.h"
#endif
