// The calling thread's state in the interpreter, and whether it is safe to read.
//
// Two hazards: the interpreter's end frees the states of daemon threads while their thread-specific
// pointers remain, even in the middle of a walk; and on 3.11 and 3.12 a signal may arrive when the
// C frame is linked and its Python frame is not yet.
#pragma once

#include <pthread.h>

#include "common/session/python_lines.h"
#include "common/system/hook_scope.h"
#include "recorder/python/interpreter.h"

namespace oomrec::stack {

struct ThreadState {
  std::uint64_t address;  // 0: not a Python thread, not yet or no longer running
  bool attached;          // holds the GIL: the interpreter cannot end meanwhile

  // Whether everything read from it so far is valid: the interpreter announces its end before it
  // frees states.
  bool was_alive() const noexcept { return attached || g_interpreter.is_finalizing() == 0; }
};

inline ThreadState thread_state() noexcept {
  const Interpreter& python = g_interpreter;
  const bool attached_is_ours = python.version_hex >= 0x030c0000;
  if (attached_is_ours) {
    // It may run on another thread than the one that created it (sub-interpreters), so do not check
    // its thread id.
    void* const attached = python.attached_state();
    if (attached != nullptr) return {reinterpret_cast<std::uint64_t>(attached), true};
  }
  void* const own = python.own_state();
  if (own == nullptr) return {0, false};
  const auto state = reinterpret_cast<std::uint64_t>(own);
  if (!attached_is_ours && own == python.attached_state()) return {state, true};
  if (python.is_finalizing() != 0) return {0, false};
  const bool stale = load<std::uint64_t>(state + python.at.thread_id) != pthread_self();
  return {stale ? 0 : state, false};
}

// The fields that we read of an interpreter's frame, unmodified.
struct FrameCells {
  std::uint64_t previous;     // address of the next frame outwards; 0: this is the outermost
  std::uint64_t code;         // its code object's address, in some versions with tag bits
  std::uint64_t instruction;  // index or address
  std::uint32_t role;         // owner or entry flag, where the version has them
};

[[gnu::always_inline]] inline FrameCells cells_of(const PythonOffsets& at,
                                                  std::uint64_t frame) noexcept {
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

constexpr std::uint64_t code_of(std::uint64_t cell) noexcept { return cell & ~std::uint64_t{7}; }

// Start of the bytecode that this frame executes: the code object's, or the thread's copy of it.
inline std::uint64_t bytecode_of(std::uint64_t frame, std::uint64_t code) noexcept {
  const PythonOffsets& at = g_interpreter.at;
  if (at.frame_tlbc_index == PythonOffsets::kAbsent) return code + at.code_bytecode;
  const auto copies = load<std::uint64_t>(code + at.code_tlbc);  // {ssize_t size; char* entries[]}
  const auto index = load<std::int32_t>(frame + at.frame_tlbc_index);
  if (copies == 0 || index < 0 || index >= load<std::int64_t>(copies)) {
    return code + at.code_bytecode;
  }
  return load<std::uint64_t>(copies + 8 + 8 * static_cast<std::uint64_t>(index));
}

// The instruction's offset in the bytecode.
inline std::uint32_t instruction_of(std::uint64_t frame, std::uint64_t code,
                                    std::uint64_t cell) noexcept {
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

// 3.10, 3.11: each eval call has a C frame in a chain, whose address locates it on the C stack.
constexpr bool have_cframe_markers(const PythonOffsets& at) noexcept {
  return at.chain == FrameChain::frame_objects_with_cframe || at.chain == FrameChain::entry_flag;
}
constexpr bool leaves_call(const PythonOffsets& at, const FrameCells& cells) noexcept {
  return at.chain != FrameChain::entry_flag || cells.role != 0;
}
inline std::uint64_t outer_cframe(const PythonOffsets& at, std::uint64_t cframe) noexcept {
  return cframe == 0 ? 0 : load<std::uint64_t>(cframe + at.cframe_previous);
}

inline bool is_shim_owner(std::uint64_t owner) noexcept {
  return g_interpreter.at.chain >= FrameChain::shim_under_cframe &&
         owner >= g_interpreter.at.first_shim_owner;
}

// In a signal handler on 3.11 and 3.12: whether the innermost eval call is completely linked.
// `cframe`: the state's innermost C frame.
bool innermost_call_is_linked(InHook, std::uint64_t state, std::uint64_t cframe) noexcept;

// Whether frames from `frame` outwards are laid out as we think: each executes a code object. Read
// by system calls, which do not fault. `none`: no frame of Python code among them.
enum class FrameCheck : std::uint8_t { none, right, wrong };
FrameCheck check_frames(InHook, std::uint64_t frame) noexcept;

}  // namespace oomrec::stack
