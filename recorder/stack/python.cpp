// Walks the calling thread's Python frames.
//
// The chain of one's own thread is stable, with or without the GIL: only this thread pushes and
// pops. The one hazard is the end of the interpreter, which frees the states of daemon threads
// while their thread-specific pointer still stands, even in the middle of a walk; the other is a
// signal on 3.11 and 3.12 in the moment when the C frame is linked and its Python frame is not yet.

#include "recorder/stack/python.h"

#include <pthread.h>

#include "recorder/stack/elf_symbols.h"
#include "recorder/stack/python_lines.h"
#include "recorder/vocabulary.h"

namespace oomrec::stack {
namespace {

// After the buffer is full: so many frames more are looked at to find the C frame they belong to.
constexpr std::uint32_t kMarkerSearch = 4096;

struct ThreadState {
  std::uint64_t address;  // 0: no Python thread, not yet or no longer running
  bool attached;          // holds the GIL: the interpreter cannot end under it

  // Whether what was read from it so far was its own: what frees it says first that it will.
  bool was_alive() const noexcept { return attached || g_interpreter.is_finalizing() == 0; }
};

ThreadState thread_state() noexcept {
  const Interpreter& python = g_interpreter;
  const bool attached_is_ours = python.version_hex >= 0x030c0000;
  void* const attached = python.attached_state();
  // An attached state may run on another thread than the one that made it (sub-interpreters), so
  // its thread id is not asked.
  if (attached_is_ours && attached != nullptr) {
    return {reinterpret_cast<std::uint64_t>(attached), true};
  }
  void* const own = python.own_state();
  if (own == nullptr) return {0, false};
  const auto state = reinterpret_cast<std::uint64_t>(own);
  if (own == attached) return {state, true};
  if (python.is_finalizing() != 0) return {0, false};
  const bool stale = load<std::uint64_t>(state + python.at.thread_id) != pthread_self();
  return {stale ? 0 : state, false};
}

bool is_shim_owner(std::uint8_t owner) noexcept {
  return g_interpreter.at.chain >= FrameChain::shim_under_cframe &&
         owner >= g_interpreter.at.first_shim_owner;
}

// In a signal handler on 3.11 and 3.12: whether the innermost eval call is completely linked. Its C
// frame is entered in the chain before its fields are set: until then they are left-overs of the
// stack. So every step is read by a system call, and the outermost frame of the call must lead to
// where the call outside it stands.
bool innermost_call_is_linked(InHook hook, std::uint64_t state, std::uint64_t cframe) noexcept {
  constexpr std::uint64_t kThreadStateBytes = 1024;  // the first C frame is a part of it
  if (cframe - state < kThreadStateBytes) return true;
  const PythonOffsets& at = g_interpreter.at;
  std::uint64_t outer = 0;
  std::uint64_t outer_frame = 0;
  if (!read_own_memory(hook, cframe + at.cframe_previous, &outer, sizeof outer) ||
      !read_own_memory(hook, outer + at.cframe_current, &outer_frame, sizeof outer_frame)) {
    return false;
  }
  auto frame = load<std::uint64_t>(cframe + at.cframe_current);
  for (std::uint32_t left = session::kMaxFrames; left != 0; --left) {
    std::byte copy[96];
    std::uint64_t type = 0;
    if (frame % 8 != 0 || !read_own_memory(hook, frame, copy, sizeof copy)) return false;
    const auto in_copy = reinterpret_cast<std::uint64_t>(copy);
    const auto code = load<std::uint64_t>(in_copy + at.frame_code);
    if (!read_own_memory(hook, code + at.object_type, &type, sizeof type) ||
        type != g_interpreter.code_type) {
      return false;
    }
    const auto previous = load<std::uint64_t>(in_copy + at.frame_previous);
    const bool outermost = at.chain == FrameChain::entry_flag
                               ? load<std::uint8_t>(in_copy + at.frame_is_entry) != 0
                               : is_shim_owner(load<std::uint8_t>(in_copy + at.frame_owner));
    if (outermost) return previous == outer_frame;
    frame = previous;
  }
  return false;
}

bool is_shim(std::uint64_t frame) noexcept {
  const PythonOffsets& at = g_interpreter.at;
  return at.frame_owner != PythonOffsets::kAbsent &&
         is_shim_owner(load<std::uint8_t>(frame + at.frame_owner));
}

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

std::uint32_t instruction_of(std::uint64_t frame, std::uint64_t code) noexcept {
  const PythonOffsets& at = g_interpreter.at;
  const std::uint64_t field = frame + at.frame_instruction;
  std::int64_t offset = 0;
  switch (at.instruction_kind) {
    case InstructionKind::byte_index:
      offset = load<std::int32_t>(field);
      break;
    case InstructionKind::unit_index:
      offset = std::int64_t{load<std::int32_t>(field)} * 2;
      break;
    case InstructionKind::pointer:
      offset = static_cast<std::int64_t>(load<std::uint64_t>(field) - bytecode_of(frame, code));
      break;
  }
  return offset < 0 || offset > INT32_MAX ? kNoInstruction : static_cast<std::uint32_t>(offset);
}

// Collects frames and, at the end of each eval call, gives them the address in its C frame.
class Collector {
 public:
  Collector(PythonFrame* frames, std::uint32_t capacity) noexcept
      : frames_(frames), capacity_(capacity) {}

  bool full() const noexcept { return count_ == capacity_; }
  std::uint32_t count() const noexcept { return count_; }
  bool call_is_open() const noexcept { return first_of_call_ != count_; }

  void add(std::uint64_t code, std::uint32_t id, std::uint32_t instruction) noexcept {
    frames_[count_++] = {code, id, instruction, 0, false};
  }

  void end_call(std::uint64_t marker) noexcept {
    mark_call(marker);
    if (call_is_open()) frames_[count_ - 1].entry = true;
    first_of_call_ = count_;
  }

  void mark_call(std::uint64_t marker) noexcept {
    for (std::uint32_t i = first_of_call_; i < count_; ++i) frames_[i].marker = marker;
  }

 private:
  PythonFrame* const frames_;
  const std::uint32_t capacity_;
  std::uint32_t count_ = 0;
  std::uint32_t first_of_call_ = 0;
};

// `cframe`: the innermost eval call's, where the version has them.
std::uint64_t innermost_frame(std::uint64_t state, std::uint64_t cframe) noexcept {
  const PythonOffsets& at = g_interpreter.at;
  if (at.thread_frame != PythonOffsets::kAbsent) {
    return load<std::uint64_t>(state + at.thread_frame);
  }
  return cframe == 0 ? 0 : load<std::uint64_t>(cframe + at.cframe_current);
}

// No address is followed before it is known to have been read from a thread that was alive: the
// memory of a freed one stays readable, but holds other things.
std::uint32_t walk(InHook hook, ThreadState state, PythonFrame* frames, std::uint32_t capacity,
                   bool* truncated, bool in_handler) noexcept {
  const PythonOffsets& at = g_interpreter.at;
  std::uint64_t cframe = 0;
  if (at.thread_cframe != PythonOffsets::kAbsent) {
    cframe = load<std::uint64_t>(state.address + at.thread_cframe);
    if (!state.was_alive()) return 0;
  }
  if (in_handler && at.cframe_current != PythonOffsets::kAbsent &&
      !innermost_call_is_linked(hook, state.address, cframe)) {
    return 0;
  }
  Collector collected(frames, capacity);
  std::uint32_t left = capacity + kMarkerSearch;
  std::uint64_t frame = innermost_frame(state.address, cframe);
  for (; frame != 0 && left != 0; --left) {
    if (!state.was_alive()) return 0;
    const std::uint64_t current = frame;
    frame = load<std::uint64_t>(current + at.frame_previous);
    if (is_shim(current)) {
      collected.end_call(current);
      continue;
    }
    if (collected.full()) {
      *truncated = true;
      if (at.chain < FrameChain::shim_under_cframe || !collected.call_is_open()) break;
      continue;
    }
    const std::uint64_t code = load<std::uint64_t>(current + at.frame_code) & ~std::uint64_t{7};
    if (!state.was_alive()) return 0;
    const std::uint32_t id = code == 0 ? 0 : intern_code(hook, code);
    if (id != kHiddenCode) collected.add(code, id, code == 0 ? 0 : instruction_of(current, code));
    switch (at.chain) {
      case FrameChain::frame_objects:
        collected.end_call(0);
        break;
      case FrameChain::frame_objects_with_cframe:
        collected.end_call(cframe);
        if (cframe != 0) cframe = load<std::uint64_t>(cframe + at.cframe_previous);
        break;
      case FrameChain::entry_flag:
        if (load<std::uint8_t>(current + at.frame_is_entry) == 0) break;
        collected.end_call(cframe);
        if (cframe != 0) cframe = load<std::uint64_t>(cframe + at.cframe_previous);
        break;
      case FrameChain::shim_under_cframe:
      case FrameChain::shim:
        break;
    }
  }
  if (at.chain == FrameChain::entry_flag) collected.mark_call(cframe);  // cut before its entry
  return collected.count();
}

}  // namespace

std::uint32_t python_frames(InHook hook, PythonFrame* frames, std::uint32_t capacity,
                            bool* truncated, bool in_handler) noexcept {
  *truncated = false;
  if (!g_interpreter.ready.load(std::memory_order_acquire)) return 0;
  python_describe(hook);
  const ThreadState state = thread_state();
  return state.address == 0 ? 0 : walk(hook, state, frames, capacity, truncated, in_handler);
}

}  // namespace oomrec::stack
