// Finds the live block at an address, and the stack that allocated it, for the program's own
// queries.
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
  std::uint64_t bytes = 0;  // as its holder counts them
  std::uint64_t birth_realtime_ns = 0;
};

// The block that begins at `address`, else the smallest of 64 KiB or more that contains it.
// Nanoseconds for the first; the second scans all live blocks, some nanoseconds each.
FoundBlock find_block(InHook, std::uint64_t address) noexcept;

// Whether a block of at least so many bytes, recorded exactly, begins there.
bool is_small_block(std::uint64_t address, std::uint64_t bytes) noexcept;

// Writes the frames of `node` to `text`, a line each, innermost first, as many as fit,
// NUL-terminated. Returns the bytes written. Each name costs a scan of its module's exported
// symbols.
std::size_t stack_text(InHook, std::uint32_t node, std::span<char> text) noexcept;

// Another thread of the parent may have been in stack_text().
void reset_names_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
