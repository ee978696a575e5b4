// One word of a stack.
#pragma once

#include <cstdint>

#include "common/machine/instructions.h"

namespace oomrec::stack {

[[gnu::always_inline]] inline std::uint64_t load_cell(std::uint64_t address) noexcept {
  return machine::load_word(address);
}

}  // namespace oomrec::stack
