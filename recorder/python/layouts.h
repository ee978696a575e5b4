// The layouts of 3.8 to 3.12, which do not publish their offsets.
#pragma once

#include "recorder/python/offsets.h"

namespace oomrec::stack {

constexpr PythonOffsets layout_3_8() noexcept {
  PythonOffsets o{};
  o.chain = FrameChain::frame_objects;
  o.instruction_kind = InstructionKind::byte_index;
  o.thread_frame = 24;
  o.thread_cframe = PythonOffsets::kAbsent;
  o.thread_id = 176;
  o.thread_status = PythonOffsets::kAbsent;
  o.cframe_current = PythonOffsets::kAbsent;
  o.cframe_previous = PythonOffsets::kAbsent;
  o.frame_previous = 24;
  o.frame_code = 32;
  o.frame_instruction = 104;
  o.frame_role = PythonOffsets::kAbsent;
  o.frame_tlbc_index = PythonOffsets::kAbsent;
  o.code_file = 104;
  o.code_name = 112;
  o.code_line_table = 120;
  o.code_first_line = 40;
  o.code_bytecode = PythonOffsets::kAbsent;
  o.code_version = PythonOffsets::kAbsent;
  o.code_tlbc = PythonOffsets::kAbsent;
  o.object_refcount = 0;
  o.object_type = 8;
  o.bytes_size = 16;
  o.bytes_data = 32;
  o.text_length = 16;
  o.text_state = 32;
  o.text_ascii_data = 48;
  o.text_wide_data = 72;
  o.text_kind_shift = 2;
  o.text_compact_mask = 0x20;
  o.text_ascii_mask = 0x40;
  o.first_shim_owner = 3;
  return o;
}

constexpr PythonOffsets layout_3_10() noexcept {
  PythonOffsets o = layout_3_8();
  o.chain = FrameChain::frame_objects_with_cframe;
  o.instruction_kind = InstructionKind::unit_index;
  o.thread_cframe = 48;
  o.cframe_previous = 8;
  o.frame_instruction = 96;
  return o;
}

constexpr PythonOffsets layout_3_11() noexcept {
  PythonOffsets o = layout_3_8();
  o.chain = FrameChain::entry_flag;
  o.instruction_kind = InstructionKind::pointer;
  o.thread_frame = PythonOffsets::kAbsent;
  o.thread_cframe = 56;
  o.thread_id = 152;
  o.cframe_current = 8;
  o.cframe_previous = 16;
  o.frame_previous = 48;
  o.frame_instruction = 56;
  o.frame_role = 68;
  o.code_file = 112;
  o.code_name = 128;
  o.code_line_table = 136;
  o.code_first_line = 72;
  o.code_bytecode = 184;
  return o;
}

constexpr PythonOffsets layout_3_12() noexcept {
  PythonOffsets o = layout_3_11();
  o.chain = FrameChain::shim_under_cframe;
  o.thread_id = 136;
  o.thread_status = 24;
  o.cframe_current = 0;
  o.cframe_previous = 8;
  o.frame_previous = 8;
  o.frame_code = 0;
  o.frame_role = 70;
  o.code_first_line = 68;
  o.code_bytecode = 192;
  o.code_version = 92;
  o.text_ascii_data = 40;
  o.text_wide_data = 56;
  return o;
}

inline constexpr PythonOffsets kLayout38 = layout_3_8();  // and 3.9
inline constexpr PythonOffsets kLayout310 = layout_3_10();
inline constexpr PythonOffsets kLayout311 = layout_3_11();
inline constexpr PythonOffsets kLayout312 = layout_3_12();

}  // namespace oomrec::stack
