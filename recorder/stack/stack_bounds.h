// The bounds of a thread's stack: the mapping that contains sp.
//
// Read from /proc/self/maps once for each stack of a thread, then cached with the thread: its own
// stack, and several others (alternate signal stacks, coroutines).
#pragma once

#include "recorder/stack/stack.h"

namespace oomrec::stack {

// stack_bounds() for all other stacks than the thread's own.
StackRange find_stack_bounds(InHook, ThreadStacks&, std::uint64_t sp) noexcept;

// The mapping that contains `sp`: every read of a walk stays in [low, high). Empty: unknown, read
// nothing.
inline StackRange stack_bounds(InHook hook, ThreadStacks& thread, std::uint64_t sp) noexcept {
  const StackRange& own = thread.ranges[0];
  if (sp >= own.low && sp < own.high) [[likely]]
    return own;
  return find_stack_bounds(hook, thread, sp);
}

}  // namespace oomrec::stack
