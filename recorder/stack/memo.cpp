#include "recorder/stack/memo.h"

#include <algorithm>
#include <atomic>

#include "recorder/stack/cell.h"

namespace oomrec::stack {
namespace {

constinit std::atomic<std::uint32_t> g_generation{1};

bool same_state(const NativeFrame& remembered, const FrameState& now) noexcept {
  return remembered.sp == now.sp && remembered.pc == now.pc && remembered.exact == now.exact &&
         (!remembered.footing.bp_matters || remembered.footing.bp == now.bp);
}

bool cell_holds(const NativeFrame& frame, std::int32_t cell, std::uint64_t value) noexcept {
  return load_cell(frame.sp + static_cast<std::uint64_t>(std::int64_t{cell})) == value;
}

// How far the remembered stack still holds, from `from` outwards, whose state is the present one.
struct Holds {
  bool to_the_end;
  const NativeFrame* known;  // the outermost frame whose whole state, bp too, is the present one
};

Holds compare(const NativeMemo& memo, const NativeFrame* from, std::uint64_t bp) noexcept {
  const NativeFrame* const last = memo.frames + kWalkedFrames - 1;
  Holds holds{false, from};
  bool same_bp = from->footing.bp == bp;
  for (const NativeFrame* frame = from; frame != last; ++frame) {
    const Footing& footing = frame->footing;
    const NativeFrame& outer = frame[1];
    if (footing.cfa_cell != Footing::kNoCell && !cell_holds(*frame, footing.cfa_cell, outer.sp))
      return holds;
    if (load_cell(outer.sp - 8) != outer.pc) return holds;
    if (footing.bp_cell != Footing::kNoCell) {
      same_bp = cell_holds(*frame, footing.bp_cell, outer.footing.bp);
      if (!same_bp && outer.footing.bp_matters) return holds;
    } else if (!footing.keeps_bp) {
      same_bp = true;
    }
    if (same_bp) holds.known = &outer;
  }
  holds.to_the_end = memo.end_cell == 0 || load_cell(memo.end_cell) == 0;
  return holds;
}

// Which frames, counted from the outermost, may be taken over, and which need their bp.
void judge(NativeMemo& memo, NativeFrame* innermost_new, bool bp_matters,
           bool all_by_rule) noexcept {
  for (NativeFrame* frame = innermost_new; frame-- > memo.frames + kWalkedFrames - memo.count;) {
    Footing& footing = frame->footing;
    footing.bp_matters = bp_matters = footing.uses_bp || (footing.keeps_bp && bp_matters);
    all_by_rule = all_by_rule && footing.by_rule;
    if (all_by_rule) ++memo.reusable;
  }
}

// The walk under way, and the remembered one that it may meet.
class Unwinding {
 public:
  Unwinding(InHook hook, const Registers& at, ThreadStacks& thread) noexcept
      : hook_(hook),
        memo_(thread.memo),
        walk_(hook, thread, at),
        next_(end() - thread.memo.reusable) {}

  NativeStack stack() noexcept {
    Step step = Step::stepped;
    while (step == Step::stepped && fresh_ < kWalkedFrames) {
      if (const NativeFrame* const met = meet()) return join(met);
      step = add_and_step();
    }
    return replace(step);
  }

 private:
  NativeFrame* end() const noexcept { return memo_.frames + kWalkedFrames; }

  Step add_and_step() noexcept {
    const FrameState frame = walk_.frame();
    const Step step = walk_.step(hook_);
    memo_.fresh[fresh_++] = {frame.pc, frame.sp, frame.exact, frame.guessed, 0, walk_.footing()};
    return step;
  }

  // The remembered frame that is the present one, with everything outside it; null: none. Goes on
  // to the outermost frame that is known to be the present stack's.
  const NativeFrame* meet() noexcept {
    const FrameState& now = walk_.frame();
    while (next_ != end() && next_->sp < now.sp) ++next_;
    if (next_ == end() || walk_.has_guessed() || !same_state(*next_, now)) return nullptr;
    const Holds holds = compare(memo_, next_, now.bp);
    if (holds.to_the_end) {
      const NativeFrame* const met = next_;
      next_ = end();
      return fits(met) ? met : nullptr;
    }
    const auto known = static_cast<std::uint32_t>(holds.known - next_);
    if (known != 0 && fresh_ + known < kWalkedFrames) {
      std::copy(next_, next_ + known, memo_.fresh + fresh_);
      fresh_ += known;
      next_ += known;
      walk_.skip_to({next_->pc, next_->sp, next_->footing.bp, next_->exact, next_->guessed});
    }
    ++next_;
    return nullptr;
  }

  bool fits(const NativeFrame* met) const noexcept { return fresh_ <= met - memo_.frames; }

  NativeStack join(const NativeFrame* met) noexcept {
    const auto kept = static_cast<std::uint32_t>(end() - met);
    NativeFrame* const outer = end() - kept;
    const bool outer_matters = outer->footing.bp_matters;
    std::copy(memo_.fresh, memo_.fresh + fresh_, outer - fresh_);
    memo_.count = kept + fresh_;
    memo_.reusable = kept;
    judge(memo_, outer, outer_matters, true);
    return {outer - fresh_, memo_.count, kept, false};
  }

  NativeStack replace(Step step) noexcept {
    const bool complete = step == Step::outermost;
    std::copy(memo_.fresh, memo_.fresh + fresh_, end() - fresh_);
    memo_.count = fresh_;
    memo_.reusable = 0;
    memo_.end_cell = walk_.end_cell();
    judge(memo_, end(), false, complete);
    return {end() - fresh_, fresh_, 0, !complete};
  }

  const InHook hook_;
  NativeMemo& memo_;
  Walk walk_;
  const NativeFrame* next_;  // of the remembered frames, not further in than the walk
  std::uint32_t fresh_ = 0;
};

}  // namespace

NativeStack remembered_unwind(InHook hook, const Registers& at, ThreadStacks& thread) noexcept {
  const std::uint32_t generation = g_generation.load(std::memory_order_relaxed);
  if (thread.generation != generation) {
    forget_memos(thread);
    thread.generation = generation;
  }
  return Unwinding(hook, at, thread).stack();
}

void forget_memos(ThreadStacks& thread) noexcept {
  thread.memo.reusable = 0;
  thread.merged.count = 0;
  forget_python(thread.python);
}

void forget_memos() noexcept { g_generation.fetch_add(1, std::memory_order_relaxed); }

}  // namespace oomrec::stack
