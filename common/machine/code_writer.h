// Writes the instructions of which a call in another process is made
// (tools/processes/attach/machine_code.cpp has their order). Four registers keep their meaning:
// where the mailbox is, where errno is, what it was, and the end of a wait.
//
// The code can be placed anywhere, and ends with its constants.
#pragma once

#include <cstdint>

namespace oomrec::machine {

// An argument of a system call that a CodeWriter writes.
struct Operand {
  std::uint64_t value = 0;
  bool by_address = false;  // of a constant of this value
};
constexpr Operand address_of(std::uint64_t constant) { return {constant, true}; }

}  // namespace oomrec::machine

#if defined(__x86_64__)
#include "common/machine/x86_64/code_writer.h"
#elif defined(__aarch64__)
#include "common/machine/aarch64/code_writer.h"
#endif
