// The walk of one stack, frame by frame.
#pragma once

#include <span>

#include "common/machine/frames.h"
#include "common/machine/instructions.h"
#include "recorder/stack/rules.h"
#include "recorder/stack/stack.h"
#include "recorder/stack/stack_bounds.h"

namespace oomrec::stack {

// The frame to step out of: its registers once everything called from it has returned.
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
  // `sp`: of the frame where the walk begins.
  Walk(InHook hook, ThreadStacks& thread, std::uint64_t sp) noexcept
      : thread_(thread), bounds_(stack_bounds(hook, thread, sp)), quick_end_(bounds_.high) {}

  // For a stack that may be damaged: reads `bounds` through the kernel.
  Walk(ThreadStacks& thread, const StackRange& bounds) noexcept
      : thread_(thread), bounds_(bounds), quick_end_(0), may_be_unmapped_(true) {}

  // The return address of the exact frame that the walk begins with, or steps into, if it is in a
  // register; 0: unknown.
  void set_link(std::uint64_t link) noexcept { link_ = link; }

  // What `frame`, of code of no module that is not exact, has in stacks if not its own pc: the
  // lines of Java that it runs, the innermost first, as return addresses. Returns how many.
  std::uint32_t lines_of(InHook, const FrameState& frame,
                         std::span<std::uint64_t> addresses) const noexcept;

  bool has_guessed() const noexcept { return guessed_; }
  bool has_crossed_signal() const noexcept { return crossed_signal_; }

  // Steps out of `frame`: where the last step led, or one further out on the same stack. `rule`:
  // the rule that was used; empty if the step took more than a rule. After a step by a rule that
  // ends in `outermost`, the new frame's pc is 0.
  //
  // The quick path works in registers only: each step depends on the one before, and going through
  // memory would treble its time.
  [[gnu::always_inline]] Outcome step(InHook hook, FrameState& frame, PackedRule& rule) noexcept {
    rule = quick_rule_at(frame.address());
    std::uint64_t cfa = frame.sp + rule.cfa_offset();
    bool quick = true;
    if (!rule.is_plain()) {
      cfa = frame.bp + rule.cfa_offset();
      quick = rule.is_framed() && cfa > frame.sp && cfa + rule.bp_offset() >= frame.sp;
    }
    if (!quick || cfa > quick_end_) [[unlikely]] {
      const Step step = step_slowly(hook, frame.pc, frame.sp, frame.bp, frame.exact);
      rule = step.rule;
      frame = {step.outer.pc, step.outer.sp, step.outer.bp, step.outer.exact, step.outer.guessed};
      return step.outcome;
    }
    if (!rule.keeps_bp()) frame.bp = machine::load_word(cfa + rule.bp_offset());
    frame.pc = machine::return_address(machine::load_word(cfa + rule.return_offset()));
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
  Step step_slowly(InHook, std::uint64_t pc, std::uint64_t sp, std::uint64_t bp,
                   bool exact) noexcept;
  bool read(InHook, std::uint64_t address, std::uint64_t& value) const noexcept;
  bool read(InHook, std::uint64_t address, std::span<std::uint64_t> words) const noexcept;
  Step step_by(InHook, const FrameState&, const Rule&, PackedRule) noexcept;
  Step step_signal(InHook, const FrameState&) noexcept;
  Step step_java(InHook, const FrameState&) noexcept;
  Step step_guess(InHook, const FrameState&) noexcept;
  Step step_epilogue(InHook, const FrameState&) noexcept;
  Step step_record(InHook, const FrameState&) noexcept;
  bool is_compiled(InHook, const FrameState& outer) noexcept;
  Step step_scan(InHook, const FrameState&) noexcept;
  bool leads_on(InHook, FrameState outer) const noexcept;
  Step step_odd(InHook, const FrameState&) noexcept;

  ThreadStacks& thread_;
  StackRange bounds_;
  std::uint64_t quick_end_;  // how far step() itself may read; 0: not at all
  std::uint64_t link_ = 0;
  std::uint64_t compiled_until_ = 0;  // the outermost record of frames known to be compiled code
  bool guessed_ = false;
  bool crossed_signal_ = false;
  bool is_trial_ = false;         // by rules only
  bool may_be_unmapped_ = false;  // after a guess on a stack that the program may unmap, or on a
                                  // damaged stack
};

// All of `walk`, from `at` outwards: see unwind().
std::uint32_t unwind(InHook, Walk& walk, const Registers& at, NativeFrame* frames,
                     std::uint32_t capacity, bool* truncated) noexcept;

}  // namespace oomrec::stack
