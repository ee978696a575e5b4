// A stack walk that reuses the outer part of the thread's last walk, as far as that is still valid.
//
// One step depends on the frame's state (pc, sp, and bp where it matters) and on the cells it
// reads: the return address below the caller's sp, the saved bp, and where an over-aligned frame
// keeps the caller's sp. So when a frame's state is in the cache and every cached cell outside it
// is unchanged, the rest of the stack is unchanged, whoever wrote it. Comparing the meeting frame
// alone is not enough: A → X → f and B → X → f leave f in the same state, and a torture test got 6
// to 13 % of its stacks wrong that way.
//
// Compares cells from the inside outwards up to the first that differs, so it reads nothing that
// the full walk would not read. Never reuses steps that took more than a rule (signal frames,
// guesses, libunwind), or frames inside them. Writes nothing to reused frames, and reads only their
// cells.
#pragma once

#include "recorder/stack/unwind.h"

namespace oomrec::stack {

struct NativeStack {
  NativeFrame* frames;  // innermost first; valid until the thread's next walk
  std::uint32_t count;
  std::uint32_t reused;  // how many, the outermost, come from the cache
  bool truncated;
  bool interrupted;  // by a signal: a frame lies below a handler's
};

// The calling thread's stack from `at` outwards: the same result as unwind(), in less time.
NativeStack cached_unwind(InHook, const Registers& at, ThreadStacks&) noexcept;

// The chain of that stack, if a recent walk of this thread began in the same state, the cells that
// it read before it reached a cached frame are unchanged, and so is the rest of the cached stack.
// 0: cache miss, call cached_unwind(). Changes nothing.
std::uint64_t cached_chain(InHook, const Registers& at, ThreadStacks&) noexcept;

void clear_caches(ThreadStacks&) noexcept;  // before another thread uses it
void invalidate_caches() noexcept;  // every thread's: rules or ids of the session have changed

}  // namespace oomrec::stack
