// The bounds of a thread's stack: the memory around sp that can be read.
//
// A thread's own stack is probed up to its control block: a system call, where /proc/self/maps
// would take longer with each thread. So are stacks that the program has switched to (coroutines),
// up to the next page that cannot be read: known_stacks.h. The main thread's, and where probing
// fails, are looked up in /proc/self/maps, and cached with the thread.
#pragma once

#include "recorder/stack/stack.h"

namespace oomrec::stack {

// stack_bounds() for all other stacks than the thread's own.
StackRange find_stack_bounds(InHook, ThreadStacks&, std::uint64_t sp) noexcept;

// The end of the memory from `from` on that can be read: a page's, or `to`. 0: the system call is
// forbidden. A system call for each page, 0.1 µs.
std::uint64_t readable_end(InHook, std::uint64_t from, std::uint64_t to) noexcept;

// The memory that contains `sp`: every read of a walk stays in [low, high). Empty: unknown, read
// nothing.
inline StackRange stack_bounds(InHook hook, ThreadStacks& thread, std::uint64_t sp) noexcept {
  const StackRange& own = thread.ranges[0];
  if (sp >= own.low && sp < own.high) [[likely]]
    return own;
  return find_stack_bounds(hook, thread, sp);
}

}  // namespace oomrec::stack
