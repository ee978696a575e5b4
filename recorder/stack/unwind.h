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
  const Footing& footing() const noexcept { return footing_; }   // of the last step
  std::uint64_t end_cell() const noexcept { return end_cell_; }  // see NativeMemo
  bool has_guessed() const noexcept { return guessed_; }

  // Goes on from a frame further out, known to be one of this stack.
  void skip_to(const FrameState& frame) noexcept { frame_ = frame; }

 private:
  bool read(InHook, std::uint64_t address, std::uint64_t& value) const noexcept;
  Step step_by(InHook, const Rule&) noexcept;
  Step step_signal(InHook) noexcept;
  Step step_guess(InHook) noexcept;
  Step step_odd(InHook) noexcept;
  Step arrive(const FrameState& next) noexcept;
  void set_footing(const Rule&, std::uint64_t cfa) noexcept;

  ThreadStacks& thread_;
  StackRange bounds_;
  FrameState frame_;
  Footing footing_{};
  std::uint64_t end_cell_ = 0;
  bool guessed_ = false;
  bool may_be_unmapped_ = false;  // a guess led here, on a stack that the program may unmap
};

}  // namespace oomrec::stack
