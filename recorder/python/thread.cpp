#include "recorder/python/thread.h"

#include "recorder/symbols/elf_symbols.h"

namespace oomrec::stack {

// The interpreter links the C frame before it sets its fields; until then they are garbage of the
// stack. So read every step by a system call, and require that the call's outermost frame leads to
// the frame of the call outside it.
bool innermost_call_is_linked(InHook hook, std::uint64_t state, std::uint64_t cframe) noexcept {
  constexpr std::uint64_t kThreadStateBytes = 1024;  // contains the first C frame
  if (cframe - state < kThreadStateBytes) return true;
  const PythonOffsets& at = g_interpreter.at;
  std::uint64_t outer = 0;
  std::uint64_t outer_frame = 0;
  if (!symbols::read_own_memory(hook, cframe + at.cframe_previous, &outer, sizeof outer) ||
      !symbols::read_own_memory(hook, outer + at.cframe_current, &outer_frame,
                                sizeof outer_frame)) {
    return false;
  }
  auto frame = load<std::uint64_t>(cframe + at.cframe_current);
  for (std::uint32_t left = session::kMaxFrames; left != 0; --left) {
    std::byte copy[96];
    std::uint64_t type = 0;
    if (frame % 8 != 0 || !symbols::read_own_memory(hook, frame, copy, sizeof copy)) return false;
    const auto in_copy = reinterpret_cast<std::uint64_t>(copy);
    const auto code = load<std::uint64_t>(in_copy + at.frame_code);
    if (!symbols::read_own_memory(hook, code + at.object_type, &type, sizeof type) ||
        type != g_interpreter.code_type) {
      return false;
    }
    const auto previous = load<std::uint64_t>(in_copy + at.frame_previous);
    const auto role = load<std::uint8_t>(in_copy + at.frame_role);
    const bool outermost = at.chain == FrameChain::entry_flag ? role != 0 : is_shim_owner(role);
    if (outermost) return previous == outer_frame;
    frame = previous;
  }
  return false;
}

FrameCheck check_frames(InHook hook, std::uint64_t frame) noexcept {
  const PythonOffsets& at = g_interpreter.at;
  FrameCheck found = FrameCheck::none;
  for (std::uint32_t left = session::kMaxFrames; frame != 0 && left != 0; --left) {
    std::byte copy[128];
    if (frame % 8 != 0 || at.frame_instruction + 8u > sizeof copy ||
        !symbols::read_own_memory(hook, frame, copy, sizeof copy))
      return FrameCheck::wrong;
    const FrameCells cells = cells_of(at, reinterpret_cast<std::uint64_t>(copy));
    frame = cells.previous;
    if (is_shim_owner(cells.role)) continue;
    std::uint64_t type = 0;
    if (!symbols::read_own_memory(hook, code_of(cells.code) + at.object_type, &type, sizeof type) ||
        type != g_interpreter.code_type)
      return FrameCheck::wrong;
    found = FrameCheck::right;
  }
  return found;
}

}  // namespace oomrec::stack
