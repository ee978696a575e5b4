// One word of a stack.
#pragma once

#include <cstdint>

namespace oomrec::stack {

// A plain load that no sanitizer takes for an access to a variable.
[[gnu::always_inline]] inline std::uint64_t load_cell(std::uint64_t address) noexcept {
  using Word [[gnu::may_alias]] = std::uint64_t;
  std::uint64_t value;
  asm volatile("movq %1, %0" : "=r"(value) : "m"(*reinterpret_cast<const Word*>(address)));
  return value;
}

}  // namespace oomrec::stack
