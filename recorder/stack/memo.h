// A walk that takes over the outer part of the thread's last one, where that still holds.
//
// One step is a function of the frame's state (pc, sp, and bp where it matters) and of the cells it
// reads: the return address below the caller's sp, where the caller's bp was saved, and where an
// over-aligned frame keeps the caller's sp. So when a frame's state is a remembered one and every
// remembered cell outside it holds what it held, the rest of the stack is what it was, whoever
// wrote it. Comparing the meeting frame alone is not enough: A → X → f and B → X → f leave f's
// state as it was, and 6 to 13 % of the stacks of a torture test were wrong that way.
//
// Cells are compared from the inside outwards, and no further than the first that differs: nothing
// is read that the full walk would not read.
// Steps that took more than a rule (signal frames, guesses, libunwind's) are never taken over, nor
// is anything inside them. Nothing of what is taken over is written, and no more of it read than
// its cells.
#pragma once

#include "recorder/stack/unwind.h"

namespace oomrec::stack {

struct NativeStack {
  NativeFrame* frames;  // innermost first; stand until the thread's next walk
  std::uint32_t count;
  std::uint32_t reused;  // so many of them, the outermost, were taken over
  bool truncated;
  bool interrupted;  // by a signal: there is a frame below a handler's
};

// The calling thread's stack from `at` outwards: what unwind() finds, in less time.
NativeStack remembered_unwind(InHook, const Registers& at, ThreadStacks&) noexcept;

// The chain of that stack, where one of the thread's latest walks began in the same state, all that
// it read until it met a remembered frame holds what it held, and the rest of the remembered stack
// is that walk's and holds, too. 0: not known; remembered_unwind() will tell. Changes nothing.
std::uint64_t known_chain(InHook, const Registers& at, ThreadStacks&) noexcept;

void forget_memos(ThreadStacks&) noexcept;  // another thread will use it
void forget_memos() noexcept;  // every thread's: rules or numbers in the session have changed

}  // namespace oomrec::stack
