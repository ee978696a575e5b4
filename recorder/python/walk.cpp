#include "recorder/python/walk.h"

#include "common/session/python_lines.h"
#include "common/session/view.h"
#include "common/session/vocabulary.h"
#include "recorder/python/attach.h"
#include "recorder/python/chain.h"
#include "recorder/python/code_fingerprint.h"
#include "recorder/python/codes.h"
#include "recorder/python/held_links.h"

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
  return offset < 0 || offset > INT32_MAX ? session::kNoInstruction
                                          : static_cast<std::uint32_t>(offset);
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
        at_(g_interpreter.at),
        memo_(memo),
        frame_(frame),
        cframe_(have_cframe_markers(at_) ? cframe : 0) {}

  PythonStack stack() noexcept {
    while (frame_ != 0) {
      const std::uint32_t met = place_of(memo_, frame_);
      const bool is_met = met < memo_.count && memo_.link(met).address == frame_;
      if (is_met) {
        std::uint64_t cframe = cframe_;
        const std::uint32_t changed = g_interpreter.links_held(memo_, met, state_, cframe);
        if (changed == kThreadDied) return forget_python(memo_);
        if (changed == kAllHold) return join(met);
        if (!take(met, changed)) return truncated();
        cframe_ = cframe;
        if (!add(&memo_.link(changed), memo_.frames[changed].word)) return end_early();
      } else if (!add(nullptr, 0)) {
        return end_early();
      }
    }
    return whole(0);
  }

 private:
  // The present link, read anew; `like` stood at this address. False: no room, or the thread died.
  bool add(const PythonLink* like, std::uint64_t word) noexcept {
    // No address is followed before it is known to have been read from a thread that was alive: the
    // memory of a freed one stays readable, but holds other things.
    const FrameCells cells = cells_of(at_, frame_);
    if (!state_.was_alive()) {
      died_ = true;
      return false;
    }
    if (!has_room_for(cells.role)) return false;
    PythonLink& link = memo_.fresh_links[fresh_];
    link = {frame_, cells.code, cells.instruction, {}, cells.role, false};
    append(is_shim_owner(cells.role) ? 0 : look_up(link, like, word), cframe_);
    if (have_cframe_markers(at_) && leaves_call(at_, cells)) cframe_ = outer_cframe(at_, cframe_);
    frame_ = cells.previous;
    return true;
  }

  // The word of a link that is not a shim.
  std::uint64_t look_up(PythonLink& link, const PythonLink* like, std::uint64_t word) noexcept {
    const std::uint64_t code = code_of(link.code);
    if (code == 0) return session::python_frame(0, 0);
    link.has_code = true;
    link.fingerprint = code_fingerprint(at_, code);
    const bool same_code = like != nullptr && like->has_code && like->code == link.code &&
                           like->fingerprint == link.fingerprint;
    std::uint32_t id = kHiddenCode;
    if (!same_code) {
      id = intern_code(hook_, code, link.fingerprint);
    } else if (word != 0) {
      id = session::code_of(word);
    }
    if (id == kHiddenCode) return 0;
    if (id == 0) link.address = 0;  // never met again: it may be told then
    return session::python_frame(id, instruction_of(frame_, code, link.instruction));
  }

  // Links of the memo that are what they were, inside of one that is not: `first` to before `end`.
  bool take(std::uint32_t first, std::uint32_t end) noexcept {
    for (std::uint32_t i = first; i != end; --i) {
      frame_ = memo_.link(i).address;
      if (!has_room_for(memo_.link(i).role)) return false;
      memo_.fresh_links[fresh_] = memo_.link(i);
      append(memo_.frames[i].word, memo_.frames[i].marker);
    }
    frame_ = end == kAllHold ? 0 : memo_.link(end).address;
    return true;
  }

  bool has_room_for(std::uint32_t role) const noexcept {
    return fresh_ != kPythonLinks && (shown_ != session::kMaxFrames || is_shim_owner(role));
  }

  // The fresh link is complete.
  void append(std::uint64_t word, std::uint64_t cframe) noexcept {
    const PythonLink& link = memo_.fresh_links[fresh_];
    memo_.fresh_frames[fresh_++] = {word, have_cframe_markers(at_) ? cframe : 0, 0, 0};
    shown_ += word != 0;
    if (is_shim_owner(link.role)) end_call(link.address);
  }

  // From 3.12 on the C frame of an eval call is known by the shim that ends it.
  void end_call(std::uint64_t marker) noexcept {
    for (; open_ != fresh_; ++open_) memo_.fresh_frames[open_].marker = marker;
  }

  // Everything from the link `met` outwards is what it was.
  PythonStack join(std::uint32_t met) noexcept {
    const bool fits =
        met + fresh_ < kPythonLinks && memo_.frames[met].shown + shown_ <= session::kMaxFrames;
    if (!fits) return take(met, kAllHold) ? whole(0) : truncated();
    if (!have_cframe_markers(at_)) end_call(memo_.frames[met].marker);
    return whole(met + 1);
  }

  PythonStack whole(std::uint32_t kept) noexcept {
    const std::uint32_t count = keep_fresh(kept);
    memo_.count = count;
    return {memo_.frames, count, kept, false};
  }

  PythonStack end_early() noexcept { return died_ ? forget_python(memo_) : truncated(); }

  PythonStack truncated() noexcept {
    if (!have_cframe_markers(at_) && open_ != fresh_) end_call(next_shim());
    memo_.count = 0;
    return {memo_.frames, keep_fresh(0), 0, true};
  }

  std::uint64_t next_shim() noexcept {
    for (std::uint32_t left = kMarkerSearch; frame_ != 0 && left != 0; --left) {
      const FrameCells cells = cells_of(at_, frame_);
      if (!state_.was_alive()) return 0;
      if (is_shim_owner(cells.role)) return frame_;
      frame_ = cells.previous;
    }
    return 0;
  }

  // The fresh links inside the outermost `kept` ones. How many there are then.
  std::uint32_t keep_fresh(std::uint32_t kept) noexcept {
    std::uint32_t shown = kept == 0 ? 0 : memo_.frames[kept - 1].shown;
    std::uint64_t chain = kept == 0 ? 0 : memo_.frames[kept - 1].chain;
    while (fresh_ != 0) {
      const PythonLink& link = memo_.link(kept) = memo_.fresh_links[--fresh_];
      PythonFrame& frame = memo_.frames[kept] = memo_.fresh_frames[fresh_];
      frame.shown = shown += frame.word != 0;
      frame.chain = chain = chain_of(chain, frame.word, frame.marker);
      place_of(memo_, link.address) = static_cast<std::uint16_t>(kept++);
    }
    return kept;
  }

  const InHook hook_;
  const ThreadState& state_;
  const PythonOffsets& at_;
  PythonMemo& memo_;
  std::uint64_t frame_;      // the present link
  std::uint64_t cframe_;     // of its eval call, where the version has them in a chain
  std::uint32_t fresh_ = 0;  // links read or taken so far
  std::uint32_t open_ = 0;   // the first of them whose call has not been left
  std::uint32_t shown_ = 0;  // of them
  bool died_ = false;
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
