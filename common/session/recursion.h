// Stacks that differ only in the depth of a recursion.
#pragma once

namespace oomrec::session {

inline constexpr unsigned kLongestCycle = 8;

// The length of the cycle of functions at one end of a stack: the fewest frames, at most
// kLongestCycle, that are of the same functions as those next to them; 0: there is none. `same(a,
// b)`: whether the frames at these distances from that end exist and are of one function; a < b.
template <class Same>
unsigned last_cycle(Same same) {
  for (unsigned length = 1; length <= kLongestCycle; ++length) {
    unsigned at = 0;
    while (at < length && same(at, at + length)) ++at;
    if (at == length) return length;
  }
  return 0;
}

}  // namespace oomrec::session
