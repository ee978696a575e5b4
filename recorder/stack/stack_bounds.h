// The bounds of a thread's stack: the memory around sp that can be read.
//
// A thread's own stack is probed up to its control block: a system call, where /proc/self/maps
// would take longer with each thread. So are stacks that the program has switched to (coroutines),
// up to the next page that cannot be read: see known_stack_end(). The main thread's, and where
// probing fails, are looked up in /proc/self/maps, and cached with the thread.
#pragma once

#include <cstdint>

#include "common/system/hook_scope.h"
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

// --- The upper ends of stacks that are no thread's own, as coroutines have them, by the page of
// sp.
//
// Shared by all threads, one word an entry, without a lock: a thread that loses its entry to
// another one finds the end again. When memory between known stacks is unmapped, all entries are
// forgotten.
inline constexpr std::uint64_t kLargestKnown = 1 << 20;  // from sp to the end

// The end of the stack with this sp, of which all memory in between can be read; 0: not known.
std::uint64_t known_stack_end(InHook, std::uint64_t sp) noexcept;

// Changes when the entries are forgotten.
std::uint64_t known_stacks_generation() noexcept;

// `end` is at most kLargestKnown above the beginning of sp's page. `generation`: from before it was
// found.
void add_known_stack(InHook, std::uint64_t sp, std::uint64_t end,
                     std::uint64_t generation) noexcept;

}  // namespace oomrec::stack
