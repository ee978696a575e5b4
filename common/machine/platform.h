// What the system calls this machine: in ELF files, in paths, and in messages. System calls and
// limits of addresses that are not the same on all machines.
#pragma once

#if defined(__x86_64__)
#include "common/machine/x86_64/platform.h"
#elif defined(__aarch64__)
#include "common/machine/aarch64/platform.h"
#endif
