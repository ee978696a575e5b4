// Functions that end in a jump to another one.
#pragma once

#if defined(__x86_64__)
#include "common/machine/x86_64/tail_jump.h"
#elif defined(__aarch64__)
#include "common/machine/aarch64/tail_jump.h"
#endif
