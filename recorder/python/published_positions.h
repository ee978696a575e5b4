// Where each offset stands in `_PyRuntime.debug_offsets`, the structure in which an interpreter
// publishes them from 3.13 on. It is a sequence of parts, one for each kind of object, which begin
// with the object's size. Versions add fields and parts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "recorder/python/offsets.h"

namespace oomrec::stack {

// By name of the field. Only the first three fields have fixed positions: cookie, version,
// free_threaded.
struct DebugPositions {
  std::uint16_t current_frame, thread_id;
  std::uint16_t previous, executable, instr_ptr, owner, tlbc_index;
  std::uint16_t filename, qualname, linetable, firstlineno, code_adaptive, tlbc;
  std::uint16_t ob_type;
  std::uint16_t bytes_size, bytes_data;
  std::uint16_t text_state, text_length, text_ascii_bytes;
};

inline constexpr std::uint32_t kFirstPublished = 13;  // minor version

// Those of 3.13 to 3.15; null: the version is in no table.
const DebugPositions* known_positions(std::uint32_t minor) noexcept;

// Those of a version in no table, if not free-threaded: each part is recognized by sizes and
// offsets that do not change (an object's header, a frame's first fields) or that the interpreter's
// types say. False: one is missing. 3.13 and 3.14 agree with the table (python_test.cpp).
bool find_positions(const std::byte* debug_offsets, const TypeSizes&, DebugPositions&) noexcept;

}  // namespace oomrec::stack
