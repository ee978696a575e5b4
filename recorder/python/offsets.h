// The offsets in an interpreter's objects that a walk over its frames needs.
//
// 3.8 to 3.12: a table, derived from each version's headers; patch releases and debug builds agree.
// From 3.13 on the interpreter publishes the offsets in `_PyRuntime`, but the format of that
// changes with every minor version, so it needs a table, too; for a version that is not in it yet,
// the offsets are found by what is known of its types (published_positions.h). A pre-release, or a
// build with another object layout (Py_TRACE_REFS, patched forks) is rejected with a reason: no
// Python frames are better than wrong ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace oomrec::stack {

// How to reach the frames of a thread.
enum class FrameChain : std::uint8_t {
  frame_objects,              // 3.8, 3.9: tstate->frame; no part of it lies on the C stack
  frame_objects_with_cframe,  // 3.10: as before, and a CFrame in each C frame of the eval loop
  entry_flag,                 // 3.11: tstate->cframe->current_frame; outermost frames carry a flag
  shim_under_cframe,          // 3.12: as 3.11, with a shim frame in each C frame of the eval loop
  shim,                       // 3.13 on: tstate->current_frame, with shim frames
};

// How a frame stores the instruction that it executes.
enum class InstructionKind : std::uint8_t {
  byte_index,  // int, -1 before the first
  unit_index,  // int, in units of two bytes, -1 before the first
  pointer,     // into the bytecode that follows the code object's header
};

struct PythonOffsets {
  static constexpr std::uint16_t kAbsent = 0xffff;
  static constexpr std::uint32_t kThreadIsActive = 1 << 4;  // it holds the GIL

  FrameChain chain;
  InstructionKind instruction_kind;
  std::uint16_t thread_frame;   // 3.8 to 3.10: frame; 3.13 on: current_frame
  std::uint16_t thread_cframe;  // 3.10 to 3.12
  std::uint16_t thread_id;
  std::uint16_t thread_status;  // 3.12 on: kThreadIsActive is one of its bits
  std::uint16_t cframe_current;
  std::uint16_t cframe_previous;
  std::uint16_t frame_previous;
  std::uint16_t frame_code;
  std::uint16_t frame_instruction;
  std::uint16_t frame_role;        // one byte: 3.11 whether it is an entry, 3.12 on the owner
  std::uint16_t frame_tlbc_index;  // free-threaded 3.14 on
  std::uint16_t code_file;
  std::uint16_t code_name;  // qualified where there is one
  std::uint16_t code_line_table;
  std::uint16_t code_first_line;
  std::uint16_t code_bytecode;
  std::uint16_t code_version;  // a number unique to the code object (3.12 on)
  std::uint16_t code_tlbc;
  std::uint16_t object_refcount;
  std::uint16_t object_type;
  std::uint16_t bytes_size;
  std::uint16_t bytes_data;
  std::uint16_t text_length;
  std::uint16_t text_state;
  std::uint16_t text_ascii_data;
  std::uint16_t text_wide_data;
  std::uint16_t text_kind_shift;  // of the state word: kind, compact and ascii bits
  std::uint16_t text_compact_mask;
  std::uint16_t text_ascii_mask;
  bool free_threaded;
  std::uint8_t first_shim_owner;  // frames with an owner from this value on are not Python's
};

// PY_VERSION_HEX of "3.11.7 (main, …)"; 0: not a version.
std::uint32_t parse_python_version(std::string_view text) noexcept;

// Whether the interpreter that publishes these offsets has no global lock. False up to 3.12.
bool is_free_threaded(const std::byte* debug_offsets) noexcept;

// Whether tables have the layout of this version.
bool is_known_version(std::uint32_t version_hex) noexcept;

// Bytes of an instance, as the types say (tp_basicsize).
struct TypeSizes {
  std::uint64_t code, bytes, text;
};

// Offsets of version `version_hex`. `debug_offsets` is the address of `_PyRuntime` (needed
// from 3.13 on, else null). On failure returns false and names the problem in static text.
bool find_python_offsets(std::uint32_t version_hex, const std::byte* debug_offsets,
                         const TypeSizes&, PythonOffsets& out, const char*& problem) noexcept;

}  // namespace oomrec::stack
