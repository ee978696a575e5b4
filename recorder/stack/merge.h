// Merges the native and the Python chain of a stack, reusing the outer part of the thread's last
// one.
#pragma once

#include "recorder/stack/stack.h"
#include "recorder/stack/walk_cache.h"

namespace oomrec::stack {

// The outer part that a merged stack shares with the last one: `frames` frames, which represent
// `native` native frames and `python` Python links, each counted from the outermost.
struct Join {
  std::uint32_t frames = 0;
  std::uint16_t native = 0;
  std::uint16_t python = 0;
  std::uint64_t call = 0;  // marker of its innermost frame, if that is a Python frame
};

// The longest part that `cache` has in common with these chains; their `reused` frames are
// unchanged since it was made.
Join join_of(const MergedCache& cache, const NativeStack&, const PythonStack&) noexcept;

struct Merged {
  std::uint32_t count;
  bool cut;  // outer frames did not fit
  // Each call of Python frames belongs to a native frame of the merged part, or to the join's. So
  // the result equals a full merge, and the next merge may join it.
  bool regular;
};

// Merges the part inside `join`, innermost first, into `merged`: Python frames replace the eval
// loop's native frames. Does not set `node`; fills in the `word` of native frames.
Merged merge(InHook, const NativeStack&, const PythonStack&, const Join&, MergedFrame* merged,
             std::uint32_t capacity) noexcept;

}  // namespace oomrec::stack
