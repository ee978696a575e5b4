// How far a thread's stack reaches: the mapping that holds sp.
//
// Asked of /proc/self/maps once for each stack that a thread is seen on, then remembered with the
// thread: its own stack, and several others (alternate signal stacks, coroutines).
#pragma once

#include "recorder/stack/stack.h"

namespace oomrec::stack {

// The mapping that holds `sp`: every read of this walk stays in [low, high). Empty: not known, and
// nothing may be read.
StackRange stack_bounds(InHook, ThreadStacks&, std::uint64_t sp) noexcept;

}  // namespace oomrec::stack
