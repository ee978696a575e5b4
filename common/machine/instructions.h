// Single instructions that have no name in C++.
#pragma once

#if defined(__x86_64__)
#include "common/machine/x86_64/instructions.h"
#elif defined(__aarch64__)
#include "common/machine/aarch64/instructions.h"
#else
#error "common/machine has no folder for this processor: docs/changing.md, An architecture"
#endif
