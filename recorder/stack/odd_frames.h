// Frames that our own rules do not cover (a CFA in another register, an expression that no compiler
// emits for ordinary frames): one step by libunwind.
#pragma once

#include "recorder/stack/unwind.h"

namespace oomrec::stack {

void start_odd_frames(InHook) noexcept;

// Whether the calling thread's stack is large enough for libunwind.
bool has_stack_for_libunwind(InHook, const StackRange& bounds) noexcept;

// Steps out of `frame` of the calling thread, whose stack is `bounds`. libunwind walks from here to
// that frame, because it needs all registers. False: it does not reach the frame, or the stack is
// too small. About 0.5 µs a frame.
bool step_odd_frame(InHook, ThreadStacks&, const StackRange& bounds, const FrameState& frame,
                    FrameState& next) noexcept;

}  // namespace oomrec::stack
