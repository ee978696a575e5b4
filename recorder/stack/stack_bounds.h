// How far a thread's stack reaches: the mapping that holds sp.
//
// Asked of /proc/self/maps once for each stack that a thread is seen on, then remembered with the
// thread: its own stack, and several others (alternate signal stacks, coroutines).
#pragma once

#include "recorder/stack/stack.h"

namespace oomrec::stack {

// The same where it is not the thread's own stack, as last seen.
StackRange search_stack_bounds(InHook, ThreadStacks&, std::uint64_t sp) noexcept;

// The mapping that holds `sp`: every read of this walk stays in [low, high). Empty: not known, and
// nothing may be read.
inline StackRange stack_bounds(InHook hook, ThreadStacks& thread, std::uint64_t sp) noexcept {
  const StackRange& own = thread.ranges[0];
  if (sp >= own.low && sp < own.high) [[likely]]
    return own;
  return search_stack_bounds(hook, thread, sp);
}

}  // namespace oomrec::stack
