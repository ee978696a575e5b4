// An argument of a system call that a CodeWriter writes.
#pragma once

#include <cstdint>

namespace oomrec::machine {

struct Operand {
  std::uint64_t value = 0;
  bool by_address = false;  // of a constant of this value
};
constexpr Operand address_of(std::uint64_t constant) { return {constant, true}; }

}  // namespace oomrec::machine
