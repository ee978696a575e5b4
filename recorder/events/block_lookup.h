// Who allocated a living block: for the program that has an address and asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/session/vocabulary.h"
#include "common/system/hook_scope.h"

namespace oomrec::recorder {

struct FoundBlock {
  Space space = Space::heap;
  std::uint32_t node = 0;  // 0: none was found
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  // as asked for
  std::uint64_t birth_realtime_ns = 0;
};

// The block that begins at `address`, else the smallest of 64 KiB or more that it lies in.
// Nanoseconds for the first; the second is a pass over all live blocks, some nanoseconds each.
FoundBlock find_block(InHook, std::uint64_t address) noexcept;

// The frames of `node`, a line each, innermost first, as many as fit: bytes written to `text`,
// which is NUL-terminated. A name costs a pass over its module's exported symbols.
std::size_t stack_text(InHook, std::uint32_t node, std::span<char> text) noexcept;

// In the child of a fork: another thread of the parent may have been in stack_text().
void reset_names_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
