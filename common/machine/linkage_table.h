// What the CFI does not say about linkage tables (PLT), through which a library calls functions of
// others.
#pragma once

#if defined(__x86_64__)
#include "common/machine/x86_64/linkage_table.h"
#elif defined(__aarch64__)
#include "common/machine/aarch64/linkage_table.h"
#endif
