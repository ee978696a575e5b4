// Walks the calling thread's Python frames.
//
// The chain of one's own thread is stable, with or without the GIL: only this thread pushes and
// pops. Most of it is what it was at the thread's last event. So the walk goes outwards, and where
// it comes to a remembered link that is what it was, the look-up is saved; where that holds for
// *every* link from one to the outermost, that part is taken over as it stands. A frame's address
// alone says nothing: its memory is reused with other callers.
//
// What makes a link what it was: its address, reached through the chain as it is now; the cells of
// the frame, which are all that the walk reads of it; the print of its code object; and, where the
// C frames of eval calls are a chain of their own (3.10, 3.11), its C frame. The word and the
// marker were made of these and of what is further out.

#include "recorder/session/view.h"
#include "recorder/stack/python_code.h"
#include "recorder/stack/python_lines.h"
#include "recorder/stack/python_thread.h"
#include "recorder/vocabulary.h"

namespace oomrec::stack {
namespace {

// After the buffer is full: so many links more are looked at to find the C frame of the last ones.
constexpr std::uint32_t kMarkerSearch = 4096;

// Start of the bytecode that this frame executes: the code object's, or its thread's copy of it.
std::uint64_t bytecode_of(std::uint64_t frame, std::uint64_t code) noexcept {
  const PythonOffsets& at = g_interpreter.at;
  if (at.frame_tlbc_index == PythonOffsets::kAbsent) return code + at.code_bytecode;
  const auto copies = load<std::uint64_t>(code + at.code_tlbc);  // {ssize_t size; char* entries[]}
  const auto index = load<std::int32_t>(frame + at.frame_tlbc_index);
  if (copies == 0 || index < 0 || index >= load<std::int64_t>(copies)) {
    return code + at.code_bytecode;
  }
  return load<std::uint64_t>(copies + 8 + 8 * static_cast<std::uint64_t>(index));
}

// In bytes of the bytecode, from what the frame says.
std::uint32_t instruction_of(std::uint64_t frame, std::uint64_t code, std::uint64_t cell) noexcept {
  std::int64_t offset = 0;
  switch (g_interpreter.at.instruction_kind) {
    case InstructionKind::byte_index:
      offset = static_cast<std::int32_t>(cell);
      break;
    case InstructionKind::unit_index:
      offset = std::int64_t{static_cast<std::int32_t>(cell)} * 2;
      break;
    case InstructionKind::pointer:
      offset = static_cast<std::int64_t>(cell - bytecode_of(frame, code));
      break;
  }
  return offset < 0 || offset > INT32_MAX ? kNoInstruction : static_cast<std::uint32_t>(offset);
}

std::uint64_t code_of(const FrameCells& cells) noexcept { return cells.code & ~std::uint64_t{7}; }

FrameCells cells_of(std::uint64_t frame) noexcept {
  const PythonOffsets& at = g_interpreter.at;
  FrameCells cells{};
  cells.previous = load<std::uint64_t>(frame + at.frame_previous);
  cells.code = load<std::uint64_t>(frame + at.frame_code);
  const std::uint64_t instruction = frame + at.frame_instruction;
  cells.instruction = at.instruction_kind == InstructionKind::pointer
                          ? load<std::uint64_t>(instruction)
                          : load<std::uint32_t>(instruction);
  if (at.frame_role != PythonOffsets::kAbsent) {
    cells.role = load<std::uint8_t>(frame + at.frame_role);
  }
  return cells;
}

// A link as it is looked up, its marker apart.
PythonLink new_link(InHook hook, std::uint64_t frame, const FrameCells& cells) noexcept {
  PythonLink link{};
  link.address = frame;
  link.cells = cells;
  if (is_shim_owner(cells.role)) return link;
  const std::uint64_t code = code_of(cells);
  if (code == 0) {
    link.word = session::python_frame(0, 0);
    return link;
  }
  link.has_code = true;
  link.print = code_print(code);
  const std::uint32_t id = intern_code(hook, code, link.print);
  if (id == kHiddenCode) return link;
  if (id == 0) link.address = 0;  // never met again: it may be told then
  link.word = session::python_frame(id, instruction_of(frame, code, cells.instruction));
  return link;
}

std::uint16_t& place_of(PythonMemo& memo, std::uint64_t address) noexcept {
  return memo.places[(address >> 4 ^ address >> 10) % PythonMemo::kPlaces];
}

// One walk, and the remembered one that it may meet.
class ChainWalk {
 public:
  ChainWalk(InHook hook, const ThreadState& state, PythonMemo& memo, std::uint64_t frame,
            std::uint64_t cframe) noexcept
      : hook_(hook),
        state_(state),
        memo_(memo),
        cframes_are_markers_(g_interpreter.at.chain == FrameChain::frame_objects_with_cframe ||
                             g_interpreter.at.chain == FrameChain::entry_flag),
        frame_(frame),
        cframe_(cframes_are_markers_ ? cframe : 0) {}

  PythonStack stack() noexcept {
    while (frame_ != 0) {
      // No address is followed before it is known to have been read from a thread that was alive:
      // the memory of a freed one stays readable, but holds other things.
      const FrameCells cells = cells_of(frame_);
      if (!state_.was_alive()) return forget_python(memo_);
      const std::uint32_t index = met_ == kNone ? place_of(memo_, frame_) : next_;
      if (holds(index, cells)) {
        if (met_ == kNone) met_ = index;
        next_ = index - 1;
      } else if (!leave_memo() || !append(new_link(hook_, frame_, cells), cframe_)) {
        return truncated();
      }
      go_outwards(cells);
    }
    return whole();
  }

 private:
  static constexpr std::uint32_t kNone = 0xffff'ffff;

  // Whether the present link is this one of the memo.
  bool holds(std::uint32_t index, const FrameCells& cells) const noexcept {
    if (index >= memo_.count) return false;
    const PythonLink& link = memo_.links[index];
    if (link.address != frame_ || !(link.cells == cells)) return false;
    if (cframes_are_markers_ && link.marker != cframe_) return false;
    return !link.has_code || code_print(code_of(cells)) == link.print;
  }

  void go_outwards(const FrameCells& cells) noexcept {
    frame_ = cells.previous;
    const bool leaves_call = cframes_are_markers_ &&
                             (g_interpreter.at.chain != FrameChain::entry_flag || cells.role != 0);
    if (leaves_call && cframe_ != 0) {
      cframe_ = load<std::uint64_t>(cframe_ + g_interpreter.at.cframe_previous);
    }
  }

  // Something further out has changed: what was met becomes a part of this walk. False: no room.
  bool leave_memo() noexcept {
    if (met_ == kNone) return true;
    const std::uint32_t first = met_;
    met_ = kNone;
    for (std::uint32_t i = first; i != next_; --i) {
      const PythonLink& link = memo_.links[i];
      if (append(link, link.marker)) continue;
      frame_ = link.address;
      return false;
    }
    return true;
  }

  bool append(const PythonLink& link, std::uint64_t cframe) noexcept {
    const bool is_shown = link.word != 0;
    if (fresh_ == kPythonLinks || (is_shown && shown_ == session::kMaxFrames)) return false;
    memo_.fresh[fresh_] = link;
    memo_.fresh[fresh_++].marker = cframes_are_markers_ ? cframe : 0;
    shown_ += is_shown;
    if (is_shim_owner(link.cells.role)) end_call(link.address);
    return true;
  }

  // From 3.12 on the C frame of an eval call is known by the shim that ends it.
  void end_call(std::uint64_t marker) noexcept {
    for (; open_ != fresh_; ++open_) memo_.fresh[open_].marker = marker;
  }

  PythonStack whole() noexcept {
    const bool fits = met_ == kNone || (met_ + fresh_ < kPythonLinks &&
                                        memo_.links[met_].shown + shown_ <= session::kMaxFrames);
    if (!fits && !leave_memo()) return truncated();
    const std::uint32_t kept = met_ == kNone ? 0 : met_ + 1;
    if (kept != 0 && !cframes_are_markers_) end_call(memo_.links[met_].marker);
    const std::uint32_t count = take_over(kept);
    memo_.count = count;
    return {memo_.links, count, kept, false};
  }

  PythonStack truncated() noexcept {
    if (!cframes_are_markers_ && open_ != fresh_) end_call(next_shim());
    memo_.count = 0;
    return {memo_.links, take_over(0), 0, true};
  }

  std::uint64_t next_shim() noexcept {
    for (std::uint32_t left = kMarkerSearch; frame_ != 0 && left != 0; --left) {
      const FrameCells cells = cells_of(frame_);
      if (!state_.was_alive()) return 0;
      if (is_shim_owner(cells.role)) return frame_;
      frame_ = cells.previous;
    }
    return 0;
  }

  // The fresh links inside the outermost `kept` ones. How many there are then.
  std::uint32_t take_over(std::uint32_t kept) noexcept {
    std::uint32_t shown = kept == 0 ? 0 : memo_.links[kept - 1].shown;
    while (fresh_ != 0) {
      PythonLink& link = memo_.links[kept] = memo_.fresh[--fresh_];
      link.shown = shown += link.word != 0;
      place_of(memo_, link.address) = static_cast<std::uint16_t>(kept++);
    }
    return kept;
  }

  const InHook hook_;
  const ThreadState& state_;
  PythonMemo& memo_;
  const bool cframes_are_markers_;
  std::uint64_t frame_;         // the present link
  std::uint64_t cframe_;        // of its eval call, where the version has them in a chain
  std::uint32_t met_ = kNone;   // since this link of the memo, all have been what they were
  std::uint32_t next_ = kNone;  // the link of the memo that must follow
  std::uint32_t fresh_ = 0;
  std::uint32_t open_ = 0;   // the first of the fresh links whose call has not been left
  std::uint32_t shown_ = 0;  // of the fresh ones
};

}  // namespace

PythonStack python_stack(InHook hook, PythonMemo& memo, bool in_handler) noexcept {
  const Interpreter& python = g_interpreter;
  if (!python.ready.load(std::memory_order_acquire)) return forget_python(memo);
  python_describe(hook);
  const ThreadState state = thread_state();
  if (state.address == 0) return forget_python(memo);
  const PythonOffsets& at = python.at;
  std::uint64_t cframe = 0;
  std::uint64_t frame = 0;
  if (at.thread_cframe != PythonOffsets::kAbsent) {
    cframe = load<std::uint64_t>(state.address + at.thread_cframe);
    if (!state.was_alive()) return forget_python(memo);
  }
  if (at.thread_frame != PythonOffsets::kAbsent) {
    frame = load<std::uint64_t>(state.address + at.thread_frame);
  } else if (in_handler && !innermost_call_is_linked(hook, state.address, cframe)) {
    return forget_python(memo);
  } else if (cframe != 0) {
    frame = load<std::uint64_t>(cframe + at.cframe_current);
  }
  if (frame == 0 || !state.was_alive()) return forget_python(memo);
  return ChainWalk(hook, state, memo, frame, cframe).stack();
}

PythonStack forget_python(PythonMemo& memo) noexcept {
  if (memo.count != 0) memo.count = 0;  // a thread without Python does not touch the page
  return {};
}

}  // namespace oomrec::stack
