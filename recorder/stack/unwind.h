// The walk of one stack, frame by frame.
#pragma once

#include "recorder/stack/cfi.h"
#include "recorder/stack/stack.h"

namespace oomrec::stack {

// A frame that is being left: its registers after everything called from it has returned.
struct FrameState {
  std::uint64_t pc, sp, bp;
  bool exact;  // pc is the instruction itself, not the one after a call
  bool guessed;
};

enum class Step : std::uint8_t { stepped, outermost, lost };

class Walk {
 public:
  Walk(InHook, ThreadStacks& thread, const Registers& at) noexcept;

  const FrameState& frame() const noexcept { return frame_; }
  Step step(InHook) noexcept;

 private:
  bool read(InHook, std::uint64_t address, std::uint64_t& value) const noexcept;
  Step step_by(InHook, const Rule&) noexcept;
  Step step_signal(InHook) noexcept;
  Step step_guess(InHook) noexcept;
  Step step_odd(InHook) noexcept;
  Step arrive(const FrameState& next) noexcept;

  ThreadStacks& thread_;
  StackRange bounds_;
  FrameState frame_;
  bool may_be_unmapped_ = false;  // a guess led here, on a stack that the program may unmap
};

// From `walk`'s frame outwards; see unwind().
std::uint32_t collect(InHook, Walk& walk, NativeFrame* frames, std::uint32_t capacity,
                      bool* truncated) noexcept;

}  // namespace oomrec::stack
