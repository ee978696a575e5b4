// The frames our own rules do not cover (a CFA in another register, an expression of a kind that no
// compiler emits for ordinary frames): one step by libunwind.
#pragma once

#include "recorder/stack/unwind.h"

namespace oomrec::stack {

void start_odd_frames(InHook) noexcept;

// Whether libunwind may be called on the calling thread's stack.
bool has_room_for_libunwind(const StackRange& bounds) noexcept;

// Steps out of `frame` of the calling thread, whose stack is `bounds`: libunwind walks the whole
// way from here to that frame, because it needs all registers. False: it does not get there, or the
// stack has no room for it. About 0.5 µs a frame.
bool step_odd_frame(InHook, ThreadStacks&, const StackRange& bounds, const FrameState& frame,
                    FrameState& next) noexcept;

}  // namespace oomrec::stack
