// Compares our walk of the caller's stack with libunwind's, frame by frame.
#pragma once

#include <cstdint>

namespace oomrec::stack {

struct OracleCount {
  std::uint64_t stacks;
  std::uint64_t different;
  std::uint64_t given_up;  // equal as far as we went, and marked truncated
  std::uint64_t frames;
  std::uint64_t deepest;
  std::uint64_t known;  // without a walk
};
extern OracleCount g_oracle;

// Walks the calling thread both ways, counts, and prints the first few differences. Any thread; in
// a signal handler that interrupts it, it does nothing.
void compare_here();

}  // namespace oomrec::stack
