// Walks a stack by rules compiled from CFI; the odd frames by what is known of them, else by
// libunwind.
//
// Nothing outside the mapped stack is read, and sp grows with every frame (a signal frame may lead
// to another stack), so that damaged stacks end a walk and not the program. What the mapping was is
// remembered, and a program may unmap parts of it beyond the frames in use: CFI does not lead
// there, a guess may. So from the first guess on, memory is read through the kernel.
#include "recorder/stack/unwind.h"

#include "recorder/stack/cell.h"
#include "recorder/stack/cfi.h"
#include "recorder/stack/elf_symbols.h"
#include "recorder/stack/odd_frames.h"
#include "recorder/stack/rules.h"
#include "recorder/stack/stack_bounds.h"

namespace oomrec::stack {
namespace {

// Where the kernel's frame keeps the registers, above a handler's return address: struct
// rt_sigframe.
constexpr std::uint64_t kSignalBp = 120, kSignalSp = 160, kSignalPc = 168;

}  // namespace

Walk::Walk(InHook hook, ThreadStacks& thread, const Registers& at) noexcept
    : thread_(thread),
      bounds_(stack_bounds(hook, thread, at.sp)),
      frame_{at.pc, at.sp, at.bp, true, false} {}

bool Walk::read(InHook hook, std::uint64_t address, std::uint64_t& value) const noexcept {
  if (address < bounds_.low || address >= bounds_.high || bounds_.high - address < sizeof value) {
    return false;
  }
  if (may_be_unmapped_) return read_own_memory(hook, address, &value, sizeof value);
  value = load_cell(address);
  return true;
}

Step Walk::arrive(const FrameState& next) noexcept {
  frame_ = next;
  return next.pc == 0 ? Step::outermost : Step::stepped;
}

// The cells that a step by `rule` out of the present frame reads, as far as they can be named.
void Walk::set_footing(const Rule& rule, std::uint64_t cfa) noexcept {
  const auto offset_of = [&](std::uint64_t cell) {
    return static_cast<std::int64_t>(cell - frame_.sp);
  };
  footing_ = {frame_.bp, Footing::kNoCell, Footing::kNoCell, true, rule.cfa != CfaBase::sp, false,
              false};
  const auto name = [&](std::int32_t& cell, std::uint64_t address) {
    const std::int64_t offset = offset_of(address);
    if (offset < 0 || offset > INT32_MAX) footing_.by_rule = false;
    cell = static_cast<std::int32_t>(offset);
  };
  if (rule.cfa == CfaBase::bp_cell)
    name(footing_.cfa_cell, frame_.bp + static_cast<std::uint64_t>(std::int64_t{rule.cfa_offset}));
  const auto bp_offset = static_cast<std::uint64_t>(std::int64_t{rule.bp_offset});
  switch (rule.bp) {
    case BpPlace::unchanged:
      footing_.keeps_bp = true;
      break;
    case BpPlace::cfa_cell:
      name(footing_.bp_cell, cfa + bp_offset);
      break;
    case BpPlace::bp_cell:
      footing_.uses_bp = true;
      name(footing_.bp_cell, frame_.bp + bp_offset);
      break;
    case BpPlace::lost:
      break;
  }
}

Step Walk::step(InHook hook) noexcept {
  footing_ = {frame_.bp, Footing::kNoCell, Footing::kNoCell, false, true, true, false};
  const Rule rule = rule_at(hook, frame_.exact ? frame_.pc : frame_.pc - 1);
  switch (rule.kind) {
    case RuleKind::step:
      return step_by(hook, rule);
    case RuleKind::end:
      footing_.by_rule = true;
      footing_.uses_bp = footing_.keeps_bp = false;
      return Step::outermost;
    case RuleKind::signal:
      return step_signal(hook);
    case RuleKind::no_information:
      return step_guess(hook);
    case RuleKind::unsupported:
      return step_odd(hook);
  }
  return Step::lost;
}

Step Walk::step_by(InHook hook, const Rule& rule) noexcept {
  const auto offset = static_cast<std::uint64_t>(std::int64_t{rule.cfa_offset});
  std::uint64_t cfa = (rule.cfa == CfaBase::sp ? frame_.sp : frame_.bp) + offset;
  if (rule.cfa == CfaBase::bp_cell && !read(hook, cfa, cfa)) return Step::lost;
  FrameState next{0, cfa, frame_.bp, false, false};
  if (cfa <= frame_.sp || !read(hook, cfa - 8, next.pc)) return Step::lost;
  const auto bp_offset = static_cast<std::uint64_t>(std::int64_t{rule.bp_offset});
  switch (rule.bp) {
    case BpPlace::unchanged:
      break;
    case BpPlace::cfa_cell:
      if (!read(hook, cfa + bp_offset, next.bp)) return Step::lost;
      break;
    case BpPlace::bp_cell:
      if (!read(hook, frame_.bp + bp_offset, next.bp)) return Step::lost;
      break;
    case BpPlace::lost:
      next.bp = 0;
      break;
  }
  set_footing(rule, cfa);
  if (next.pc == 0) end_cell_ = cfa - 8;
  return arrive(next);
}

Step Walk::step_signal(InHook hook) noexcept {
  FrameState next{0, 0, 0, true, false};
  if (!read(hook, frame_.sp + kSignalPc, next.pc) || !read(hook, frame_.sp + kSignalSp, next.sp) ||
      !read(hook, frame_.sp + kSignalBp, next.bp)) {
    return Step::lost;
  }
  if (next.sp < bounds_.low || next.sp >= bounds_.high) {  // the handler had a stack of its own
    bounds_ = stack_bounds(hook, thread_, next.sp);
  } else if (next.sp <= frame_.sp) {
    return Step::lost;
  }
  return arrive(next);
}

// Code without CFI: its frame is where bp points, if a return address into known code is there. The
// outermost frame has a bp of 0 (System V ABI, 3.4.1): the loader's own start, for one.
Step Walk::step_guess(InHook hook) noexcept {
  if (frame_.bp == 0 && !frame_.exact) return Step::outermost;
  guessed_ = true;
  may_be_unmapped_ = bounds_.grows == 0;
  FrameState next{0, frame_.bp + 16, 0, false, true};
  if (frame_.bp <= frame_.sp || frame_.bp % 8 != 0 || !read(hook, frame_.bp, next.bp) ||
      !read(hook, frame_.bp + 8, next.pc)) {
    return Step::lost;
  }
  const std::uint32_t slot = module_slot_at(hook, next.pc - 1);
  if (slot == 0 || known_module(slot).segment_at(next.pc - 1, PF_X).start == 0) return Step::lost;
  return arrive(next);
}

// libunwind walks all the way here, and reads what it likes.
Step Walk::step_odd(InHook hook) noexcept {
  if (may_be_unmapped_) return Step::lost;
  FrameState next;
  if (!step_odd_frame(hook, thread_, bounds_, frame_, next)) return Step::lost;
  if (next.sp <= frame_.sp || next.sp > bounds_.high) return Step::lost;
  return arrive(next);
}

std::uint32_t unwind(InHook hook, const Registers& at, ThreadStacks& thread, NativeFrame* frames,
                     std::uint32_t capacity, bool* truncated) noexcept {
  Walk walk(hook, thread, at);
  std::uint32_t count = 0;
  Step step = Step::stepped;
  while (step == Step::stepped && count < capacity) {
    const FrameState frame = walk.frame();
    step = walk.step(hook);
    frames[count++] = {frame.pc, frame.sp, frame.exact, frame.guessed, 0, walk.footing()};
  }
  *truncated = step != Step::outermost;
  return count;
}

}  // namespace oomrec::stack
