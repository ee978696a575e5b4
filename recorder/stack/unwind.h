// The walk of one stack, frame by frame.
#pragma once

#include "recorder/stack/cell.h"
#include "recorder/stack/rules.h"
#include "recorder/stack/stack.h"
#include "recorder/stack/stack_bounds.h"

namespace oomrec::stack {

// A frame that is being left: its registers after everything called from it has returned.
struct FrameState {
  std::uint64_t pc, sp, bp;
  bool exact;  // pc is the instruction itself, not the one after a call
  bool guessed;

  static FrameState of(const Registers& at) noexcept {
    return {at.pc, at.sp, at.bp, at.exact, false};
  }
  std::uint64_t address() const noexcept { return pc - (exact ? 0 : 1); }  // rule_at()'s
};

enum class Outcome : std::uint8_t { stepped, outermost, lost };

class Walk {
 public:
  // `sp`: where the walk begins.
  Walk(InHook hook, ThreadStacks& thread, std::uint64_t sp) noexcept
      : thread_(thread), bounds_(stack_bounds(hook, thread, sp)), quick_end_(bounds_.high) {}

  // Of a stack that may be damaged: all that is read of `bounds` is read through the kernel.
  Walk(ThreadStacks& thread, const StackRange& bounds) noexcept
      : thread_(thread), bounds_(bounds), quick_end_(0), may_be_unmapped_(true) {}

  bool has_guessed() const noexcept { return guessed_; }
  bool has_met_signal() const noexcept { return met_signal_; }

  // Goes from `frame`, where the last step led or one further out that is known to be of this
  // stack, to the next. `rule`: by which, if by no more than a rule; else unknown. Where a step by
  // a rule ends in `outermost`, the new frame has a pc of 0.
  //
  // The quick way is all in registers: frames are stepped out of one by one, each step waits for
  // the one before, and memory in between would treble its time.
  [[gnu::always_inline]] Outcome step(InHook hook, FrameState& frame, PackedRule& rule) noexcept {
    rule = quick_rule_at(frame.address());
    std::uint64_t cfa = frame.sp + rule.cfa_offset();
    bool quick = true;
    if (!rule.is_plain()) {
      cfa = frame.bp + rule.cfa_offset();
      quick = rule.is_framed() && cfa > frame.sp && cfa + rule.bp_offset() >= frame.sp;
    }
    if (!quick || cfa > quick_end_) [[unlikely]] {
      const Step step = step_with_care(hook, frame.pc, frame.sp, frame.bp, frame.exact);
      rule = step.rule;
      frame = {step.outer.pc, step.outer.sp, step.outer.bp, step.outer.exact, step.outer.guessed};
      return step.outcome;
    }
    if (!rule.keeps_bp()) frame.bp = load_cell(cfa + rule.bp_offset());
    frame.pc = load_cell(cfa - 8);
    frame.sp = cfa;
    frame.exact = frame.guessed = false;
    return frame.pc == 0 ? Outcome::outermost : Outcome::stepped;
  }

 private:
  struct Step {
    Outcome outcome = Outcome::lost;
    PackedRule rule{};
    FrameState outer{};
  };
  static Step arrive(const FrameState& outer, PackedRule rule) noexcept {
    return {outer.pc == 0 ? Outcome::outermost : Outcome::stepped, rule, outer};
  }
  Step step_with_care(InHook, std::uint64_t pc, std::uint64_t sp, std::uint64_t bp,
                      bool exact) noexcept;
  bool read(InHook, std::uint64_t address, std::uint64_t& value) const noexcept;
  Step step_by(InHook, const FrameState&, const Rule&, PackedRule) noexcept;
  Step step_signal(InHook, const FrameState&) noexcept;
  Step step_guess(InHook, const FrameState&) noexcept;
  Step step_odd(InHook, const FrameState&) noexcept;

  ThreadStacks& thread_;
  StackRange bounds_;
  std::uint64_t quick_end_;  // of what step() itself may read; 0: nothing
  bool guessed_ = false;
  bool met_signal_ = false;
  bool may_be_unmapped_ = false;  // a guess led here, on a stack that the program may unmap; or
                                  // it is damaged
};

// The whole of `walk`, from `at` outwards: see unwind().
std::uint32_t unwind(InHook, Walk& walk, const Registers& at, NativeFrame* frames,
                     std::uint32_t capacity, bool* truncated) noexcept;

}  // namespace oomrec::stack
