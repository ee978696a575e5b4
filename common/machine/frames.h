// How a call leaves its frame on the stack: the registers that a walk tracks, with DWARF's numbers,
// where a frame keeps the return address, and what the kernel saves for a signal handler.
//
// Both folders define the same names; frames of a machine are the ABI's, and constant.
#pragma once

#if defined(__x86_64__)
#include "common/machine/x86_64/frames.h"
#elif defined(__aarch64__)
#include "common/machine/aarch64/frames.h"
#endif
