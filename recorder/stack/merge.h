// Both chains of a stack in one, and how much of it may be taken over from the thread's last.
#pragma once

#include "recorder/stack/memo.h"
#include "recorder/stack/stack.h"

namespace oomrec::stack {

// The outer part of a merged stack that is the last one's: so many of its frames, which stand for
// so many native frames and Python links, each counted from the outermost.
struct Join {
  std::uint32_t frames = 0;
  std::uint16_t native = 0;
  std::uint16_t python = 0;
  std::uint64_t call = 0;  // marker of its innermost frame, where that is a Python frame
};

// The longest that `memo` has in common with these chains, of which `reused` have stood since it
// was made.
Join join_of(const MergedMemo& memo, const NativeStack&, const PythonStack&) noexcept;

struct Merged {
  std::uint32_t count;
  bool cut;  // outer ones did not fit
  // Each call of Python frames is in a native frame of the merged part, or in the one that holds
  // the join; so the result is what merging both chains whole gives, and the next merge may join.
  bool regular;
};

// What is inside `join`, innermost first, into `merged`: Python frames stand in place of the eval
// loop's native frames. Leaves `node` alone; fills in the `word` of native frames.
Merged merge(InHook, const NativeStack&, const PythonStack&, const Join&, MergedFrame* merged,
             std::uint32_t capacity) noexcept;

}  // namespace oomrec::stack
