// Walks a stack by rules compiled from CFI; signal frames, frames without CFI, and odd frames by
// separate functions.
//
// Reads nothing outside the mapped stack, and sp must grow with every frame (a signal frame may
// lead to another stack), so that a damaged stack ends the walk and not the program. The bounds are
// cached, and a program may unmap parts of its stack beyond the frames in use: CFI never leads
// there, a guess may. So after the first guess, memory is read through the kernel.
#include "recorder/stack/unwind.h"

#include <algorithm>
#include <utility>

#include "common/machine/generated_code.h"
#include "common/machine/java_frames.h"
#include "common/machine/page.h"
#include "recorder/stack/java.h"
#include "recorder/stack/odd_frames.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::stack {
namespace {

// Code of no module, such as the kernel's where an emulator maps it: a system call tells whether it
// can be read.
bool is_signal_return(InHook hook, std::uint64_t pc) noexcept {
  constexpr std::uint64_t kBytes = machine::kSignalReturnBytes;
  if constexpr (kBytes == 0) return false;
  return readable_end(hook, pc, pc + kBytes) == pc + kBytes &&
         machine::is_signal_return(reinterpret_cast<const void*>(pc));
}

// Whether a module has code there.
bool is_code(InHook hook, std::uint64_t address) noexcept {
  const std::uint32_t slot = module_slot_at(hook, address);
  return slot != 0 && loaded_module(slot).segment_at(address, PF_X).start != 0;
}

// Whether a word is where code of a module goes on after it has called code of no module: by an
// indirect call, or through a function in assembly that jumps there in its own frame (LuaJIT's
// interpreter), and has no ordinary rule at its entry. What else a stack holds of such addresses is
// left from earlier calls.
bool may_call_generated_code(InHook hook, std::uint64_t word) noexcept {
  constexpr std::uint64_t kNoModuleBelow = 1 << 16;
  if (word < kNoModuleBelow || word >> kAddressBits != 0) return false;
  const std::uint32_t slot =
      module_search_is_slow() ? known_module_slot_at(word - 1) : module_slot_at(hook, word - 1);
  if (slot == 0) return false;
  const AddressRange code = loaded_module(slot).segment_at(word - 1, PF_X);
  std::uint8_t before[machine::kLongestCall];
  if (code.start == 0 || word - code.start < sizeof before ||
      !symbols::read_own_memory(hook, word - sizeof before, before, sizeof before))
    return false;
  const machine::Callee callee = machine::callee_of(before, word);
  if (callee.kind != machine::Callee::Kind::function)
    return callee.kind == machine::Callee::Kind::unknown;
  if (!code.holds(callee.address)) return false;
  const PackedRule entry = rule_at(hook, callee.address);
  return entry.is_step() && !(entry.is_plain() && entry.cfa_offset() == 8);
}

}  // namespace

bool Walk::read(InHook hook, std::uint64_t address, std::uint64_t& value) const noexcept {
  if (address < bounds_.low || address >= bounds_.high || bounds_.high - address < sizeof value) {
    return false;
  }
  if (may_be_unmapped_) return symbols::read_own_memory(hook, address, &value, sizeof value);
  value = machine::load_word(address);
  return true;
}

// Through the kernel where it is not known to be mapped.
bool Walk::read(InHook hook, std::uint64_t address, std::span<std::uint64_t> words) const noexcept {
  const std::uint64_t bytes = words.size_bytes();
  if (bytes == 0 || address < bounds_.low || address >= bounds_.high ||
      bounds_.high - address < bytes)
    return false;
  if (bounds_.kind != StackKind::growing)
    return symbols::read_own_memory(hook, address, words.data(), bytes);
  for (std::size_t i = 0; i != words.size(); ++i) words[i] = machine::load_word(address + i * 8);
  return true;
}

[[gnu::noinline]] Walk::Step Walk::step_slowly(InHook hook, std::uint64_t pc, std::uint64_t sp,
                                               std::uint64_t bp, bool exact) noexcept {
  const FrameState frame{pc, sp, bp, exact, false};
  const PackedRule packed = rule_at(hook, frame.address());
  // The guess has not told where this frame is, only its caller's record.
  if (!machine::kRecordEndsFrame && guessed_ && packed.kind() == RuleKind::step)
    return step_guess(hook, frame);
  if (packed.is_step()) return step_by(hook, frame, packed.unpack(), packed);
  switch (packed.kind()) {
    case RuleKind::step:
      return step_by(hook, frame, whole_rule_at(hook, frame.address()), {});
    case RuleKind::end:
      return {Outcome::outermost, packed, {}};
    case RuleKind::signal:
      return step_signal(hook, frame);
    case RuleKind::no_information:
      if (!exact && is_signal_return(hook, pc)) return step_signal(hook, frame);
      return step_guess(hook, frame);
    case RuleKind::unsupported:
      return step_odd(hook, frame);
  }
  return {};
}

Walk::Step Walk::step_by(InHook hook, const FrameState& frame, const Rule& rule,
                         PackedRule packed) noexcept {
  if (rule.kind != RuleKind::step) return {};
  const auto offset = static_cast<std::uint64_t>(std::int64_t{rule.cfa_offset});
  std::uint64_t cfa = (rule.cfa == CfaBase::sp ? frame.sp : frame.bp) + offset;
  if (rule.cfa == CfaBase::bp_cell && !read(hook, cfa, cfa)) return {};
  FrameState outer{0, cfa, frame.bp, false, false};
  if (rule.return_location == ReturnLocation::link) {
    // A leaf may have no frame of its own.
    if (!frame.exact || link_ == 0 || cfa < frame.sp) return {};
    outer.pc = link_;
  } else {
    const auto return_offset = static_cast<std::uint64_t>(std::int64_t{rule.return_offset});
    if (cfa <= frame.sp || !read(hook, cfa + return_offset, outer.pc)) return {};
    outer.pc = machine::return_address(outer.pc);
  }
  const auto bp_offset = static_cast<std::uint64_t>(std::int64_t{rule.bp_offset});
  switch (rule.bp) {
    case BpLocation::unchanged:
      break;
    case BpLocation::cfa_cell:
      if (!read(hook, cfa + bp_offset, outer.bp)) return {};
      break;
    case BpLocation::bp_cell:
      if (!read(hook, frame.bp + bp_offset, outer.bp)) return {};
      break;
    case BpLocation::lost:
      outer.bp = 0;
      break;
  }
  return arrive(outer, packed);
}

Walk::Step Walk::step_signal(InHook hook, const FrameState& frame) noexcept {
  crossed_signal_ = true;
  FrameState outer{0, 0, 0, true, false};
  if (!read(hook, frame.sp + machine::kSignalPc, outer.pc) ||
      !read(hook, frame.sp + machine::kSignalSp, outer.sp) ||
      !read(hook, frame.sp + machine::kSignalBp, outer.bp)) {
    return {};
  }
  if constexpr (machine::kSignalLink != 0) {
    if (!read(hook, frame.sp + machine::kSignalLink, link_)) return {};
    link_ = machine::return_address(link_);
  }
  if (outer.sp < bounds_.low || outer.sp >= bounds_.high) {  // the handler ran on another stack
    bounds_ = stack_bounds(hook, thread_, outer.sp);
    quick_end_ = may_be_unmapped_ ? 0 : bounds_.high;
  } else if (outer.sp <= frame.sp) {
    return {};
  }
  return arrive(outer, {});
}

// Whether `outer`, whose pc is in no module, is compiled code of a runtime such as V8, which keeps
// frame records: these lead on, outwards, to a return address into a module's code.
bool Walk::is_compiled(InHook hook, const FrameState& outer) noexcept {
  constexpr std::uint32_t kMostRecords = 64;
  if (outer.pc == 0) return false;
  std::uint64_t record = outer.bp;
  std::uint64_t inner = outer.sp - 16;
  if (record > inner && record <= compiled_until_) return true;
  for (std::uint32_t i = 0; i < kMostRecords; ++i) {
    std::uint64_t next = 0;
    std::uint64_t pc = 0;
    if (record <= inner || record % 8 != 0 || !read(hook, record, next) ||
        !read(hook, record + 8, pc))
      return false;
    pc = machine::return_address(pc);
    if (pc == 0) return false;
    if (is_code(hook, pc - 1)) {
      compiled_until_ = record;
      return true;
    }
    inner = std::exchange(record, next);
  }
  return false;
}

// HotSpot's code, whose frames it describes itself: the step is as certain as one by CFI.
Walk::Step Walk::step_java(InHook hook, const FrameState& frame) noexcept {
  const JavaCode code = frame.exact ? JavaCode{} : java_code_at(hook, frame.pc);
  FrameState outer{0, 0, 0, false, false};
  std::uint64_t record = frame.bp;
  if (code.kind == JavaCode::Kind::entry) {
    outer.sp = record + 16;
  } else if (code.kind == JavaCode::Kind::interpreter) {
    // Where its caller has the arguments: the interpreter may have made room for locals below.
    if (record < frame.sp || !read(hook, record - machine::kJavaCallerSp, outer.sp)) return {};
    if (outer.sp < record + 16 || outer.sp >= bounds_.high) outer.sp = record + 16;
  } else if (code.frame_bytes >= 16) {
    outer.sp = frame.sp + code.frame_bytes;
    record = outer.sp - 16;
  } else {
    return {};
  }
  if (outer.sp <= frame.sp || !read(hook, record, outer.bp) || !read(hook, record + 8, outer.pc))
    return {};
  if (!is_code(hook, outer.pc - 1) && java_code_at(hook, outer.pc).kind == JavaCode::Kind::none)
    return {};
  return arrive(outer, {});
}

std::uint32_t Walk::lines_of(InHook hook, const FrameState& frame,
                             std::span<std::uint64_t> addresses) const noexcept {
  const JavaCode code = frame.exact ? JavaCode{} : java_code_at(hook, frame.pc);
  if (code.kind == JavaCode::Kind::method)
    return compiled_java_lines(hook, code, frame.pc, addresses);
  std::uint64_t method = 0, bytecode = 0;
  return code.kind == JavaCode::Kind::interpreter && frame.bp >= frame.sp &&
                 read(hook, frame.bp - machine::kJavaMethod, method) &&
                 read(hook, frame.bp - machine::kJavaBytecode, bytecode) &&
                 interpreted_java_line(method, bytecode, addresses[0])
             ? 1
             : 0;
}

// Code without CFI: assume that bp points at its frame, if a return address into a module's code is
// there, or one into compiled code. Where its record is not at the end of the frame, the sp is a
// guess as well, and the frames further out are found in the same way. The outermost frame has a bp
// of 0 (System V ABI, 3.4.1): the loader's start code, for one. But code of no module may use bp
// for anything.
Walk::Step Walk::step_guess(InHook hook, const FrameState& frame) noexcept {
  if (is_trial_) return {};
  if (const Step step = step_java(hook, frame); step.outcome != Outcome::lost) return step;
  guessed_ = true;
  const bool is_generated = module_slot_at(hook, frame.address()) == 0;
  if (machine::kCallStoresReturn && is_generated) {
    const Step step = step_epilogue(hook, frame);
    if (step.outcome != Outcome::lost) return step;
  }
  const Step step = step_record(hook, frame);
  if (step.outcome != Outcome::lost) return step;
  if (machine::kCallStoresReturn && is_generated) {
    const Step found = step_scan(hook, frame);
    if (found.outcome != Outcome::lost) return found;
  }
  return {frame.bp == 0 && !frame.exact ? Outcome::outermost : Outcome::lost, {}, {}};
}

Walk::Step Walk::step_record(InHook hook, const FrameState& frame) noexcept {
  const bool may_be_unmapped =
      std::exchange(may_be_unmapped_, may_be_unmapped_ || bounds_.kind != StackKind::growing);
  const std::uint64_t quick_end =
      std::exchange(quick_end_, may_be_unmapped_ || !machine::kRecordEndsFrame ? 0 : quick_end_);
  FrameState outer{0, frame.bp + 16, 0, false, true};
  if (frame.bp > frame.sp && frame.bp % 8 == 0 && read(hook, frame.bp, outer.bp) &&
      read(hook, frame.bp + 8, outer.pc)) {
    outer.pc = machine::return_address(outer.pc);
    if (is_code(hook, outer.pc - 1) || is_compiled(hook, outer)) return arrive(outer, {});
  }
  may_be_unmapped_ = may_be_unmapped;
  quick_end_ = quick_end;
  return {};
}

// Whether rules lead from there to the end of the stack, or to more code of no module.
bool Walk::leads_on(InHook hook, FrameState outer) const noexcept {
  constexpr std::uint32_t kMostFrames = 1024;
  Walk trial{*this};
  trial.is_trial_ = true;
  if (bounds_.kind != StackKind::growing) {
    trial.may_be_unmapped_ = true;
    trial.quick_end_ = 0;
  }
  for (std::uint32_t frames = 0; frames != kMostFrames; ++frames) {
    const std::uint64_t address = outer.address();
    PackedRule rule;
    switch (trial.step(hook, outer, rule)) {
      case Outcome::outermost:
        return true;
      case Outcome::lost:
        return frames != 0 && module_slot_at(hook, address) == 0 &&
               readable_end(hook, address, address + 1) == address + 1;
      case Outcome::stepped:
        break;
    }
  }
  return true;
}

// Code of no module that returns right after the call that it makes: CPython's trampolines.
Walk::Step Walk::step_epilogue(InHook hook, const FrameState& frame) noexcept {
  std::uint8_t code[32];
  const std::uint64_t end = std::min(frame.pc + sizeof code, machine::page_up(frame.pc + 1));
  if (frame.exact || !symbols::read_own_memory(hook, frame.pc, code, end - frame.pc)) return {};
  const machine::Epilogue epilogue = machine::epilogue_of({code, end - frame.pc});
  FrameState outer{0, frame.sp + epilogue.frame_bytes, frame.bp, false, true};
  if (epilogue.frame_bytes == 0 || !read(hook, outer.sp - 8, outer.pc)) return {};
  if (epilogue.has_bp && !read(hook, frame.sp + epilogue.bp_offset, outer.bp)) return {};
  return is_code(hook, outer.pc - 1) || module_slot_at(hook, outer.pc) == 0 ? arrive(outer, {})
                                                                            : Step{};
}

// Code of no module that keeps no record: what LuaJIT and LLVM compile. Its return address is
// further up: the first word behind a call of generated code from where rules lead on, which also
// shows that the rest of the walk is safe. What the code has saved of bp is among the words below
// it.
Walk::Step Walk::step_scan(InHook hook, const FrameState& frame) noexcept {
  constexpr std::uint32_t kWords = 64, kChunks = 4, kMostTrials = 64;
  if (may_be_unmapped_) return {};  // an earlier guess is as uncertain
  std::uint64_t words[kWords];
  std::uint32_t trials = 0;
  for (std::uint32_t chunk = 0; chunk != kChunks; ++chunk) {
    const std::uint64_t from = frame.sp + chunk * sizeof words;
    const std::uint64_t bytes = std::min(sizeof words, bounds_.high - std::min(from, bounds_.high));
    if (!read(hook, from, {words, bytes / 8})) break;
    for (std::uint32_t at = 0; at != bytes / 8; ++at) {
      const std::uint64_t cell = from + at * 8;
      if (!may_call_generated_code(hook, words[at])) continue;
      FrameState outer{words[at], cell + 8, frame.bp, false, true};
      if (leads_on(hook, outer)) return arrive(outer, {});
      for (std::uint64_t saved = cell; saved > frame.sp && ++trials < kMostTrials;) {
        saved -= 8;
        if (!read(hook, saved, outer.bp)) break;
        if (outer.bp > cell && outer.bp < bounds_.high && outer.bp % 8 == 0 &&
            leads_on(hook, outer))
          return arrive(outer, {});
      }
      if (++trials >= kMostTrials) return {};
    }
  }
  return {};
}

// libunwind starts from the innermost frame, so it would also read frames whose memory may be
// unmapped.
Walk::Step Walk::step_odd(InHook hook, const FrameState& frame) noexcept {
  if (may_be_unmapped_) return {};
  FrameState outer;
  if (!step_odd_frame(hook, thread_, bounds_, frame, outer)) return {};
  if (outer.sp <= frame.sp || outer.sp > bounds_.high) return {};
  return arrive(outer, {});
}

std::uint32_t unwind(InHook hook, Walk& walk, const Registers& at, NativeFrame* frames,
                     std::uint32_t capacity, bool* truncated) noexcept {
  FrameState frame = FrameState::of(at);
  Outcome outcome = Outcome::stepped;
  std::uint32_t count = 0;
  while (outcome == Outcome::stepped && count < capacity) {
    NativeFrame& now = frames[count++] = {
        .pc = frame.pc, .sp = frame.sp, .exact = frame.exact, .guessed = frame.guessed};
    const FrameState stepped_out_of = frame;
    PackedRule rule;
    outcome = walk.step(hook, frame, rule);
    if (rule.present()) continue;
    std::uint64_t lines[kMostInlined];
    const std::uint32_t found = walk.lines_of(hook, stepped_out_of, lines);
    if (found != 0) now.pc = lines[0];
    for (std::uint32_t i = 1; i < found && count < capacity; ++i)
      frames[count++] = {.pc = lines[i], .sp = now.sp, .guessed = now.guessed};
  }
  *truncated = outcome != Outcome::outermost;
  return count;
}

std::uint32_t unwind(InHook hook, const Registers& at, ThreadStacks& thread, NativeFrame* frames,
                     std::uint32_t capacity, bool* truncated) noexcept {
  Walk walk(hook, thread, at.sp);
  walk.set_link(at.link);
  return unwind(hook, walk, at, frames, capacity, truncated);
}

}  // namespace oomrec::stack
