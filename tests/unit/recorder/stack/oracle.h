// Compares our walk of the caller's stack with libunwind's, frame by frame.
#pragma once

#include <cstdint>

namespace oomrec::stack {

struct OracleCount {
  std::uint64_t stacks;
  std::uint64_t different;
  std::uint64_t given_up;  // equal up to where we stopped, and marked as truncated
  std::uint64_t frames;
  std::uint64_t deepest;
  std::uint64_t known;  // from the cache, without a walk
};
extern OracleCount g_oracle;

// Walks the calling thread in both ways, counts, and prints the first few differences. On any
// thread. A no-op in a signal handler that interrupts it.
void compare_here();

}  // namespace oomrec::stack
