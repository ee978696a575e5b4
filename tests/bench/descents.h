// Stacks that change between two events, as the micro benchmarks make them.
//
// The functions have eight frame sizes and no frame pointer. Between two events the stack changes:
//   a  only in its innermost frame;
//   b  up to DEPTH/2 frames return and are replaced by others;
//   c  in all frames (unlike real programs: the bound for reusing the last stack);
//   d  in return addresses alone: 8 stacks in turns, like those of a program whose blocks all come
//      from one function at the same depth.
// Paths of the others come from a set of four, so that stacks recur as in programs.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace descents {

// The event itself, defined by the including program. Two functions call it.
inline void event(std::size_t bytes);

inline char g_pattern;
inline unsigned g_depth;
inline std::uint64_t g_events;  // still to do
inline unsigned g_resume;       // the depth to which the stack is taken down after an event
inline unsigned g_path;         // 0…3, d: 0…7: the calls that are made on the way down again
inline std::uint64_t g_random = 1;
inline volatile unsigned g_sink;

inline unsigned random_below(unsigned bound) {
  g_random ^= g_random << 13;
  g_random ^= g_random >> 7;
  g_random ^= g_random << 17;
  return static_cast<unsigned>(g_random >> 33) % bound;
}

[[gnu::noinline]] inline void odd_event(std::size_t bytes) {
  event(bytes);
  g_sink = g_sink + 1;
}

[[gnu::noinline]] inline void even_event(std::size_t bytes) {
  event(bytes + 1);
  g_sink = g_sink + 2;
}

[[gnu::noinline]] inline void innermost() {
  do {
    const std::size_t bytes = 48 + g_events % 64;
    if (g_events % 2 != 0) {
      odd_event(bytes);
    } else {
      even_event(bytes);
    }
  } while (--g_events > 0 && g_pattern == 'a');
  g_resume = g_pattern == 'b' ? g_depth - 1 - random_below(g_depth / 2) : 0;
  g_path = random_below(g_pattern == 'd' ? 8 : 4);
}

inline void descend(unsigned depth);

// Calls deeper functions until the stack must be unwound beyond this level.
template <unsigned kPadding>
[[gnu::noinline]] void frame(unsigned depth) {
  volatile char padding[kPadding];
  padding[0] = static_cast<char>(depth);
  do {
    descend(depth + 1);
  } while (g_events > 0 && g_resume == depth);
  g_sink = g_sink + static_cast<unsigned>(padding[0]);
}

// Makes its call in one of two places.
[[gnu::noinline]] inline void rung(unsigned depth) {
  if ((g_path >> depth % 3 & 1) != 0) {
    descend(depth + 1);
    g_sink = g_sink + 3;
  } else {
    descend(depth + 1);
    g_sink = g_sink + 4;
  }
}

inline void descend(unsigned depth) {
  if (depth == g_depth) return innermost();
  if (g_pattern == 'd') return rung(depth);
  switch ((depth * 4 + g_path) * 2654435761u >> 29) {
    case 0:
      return frame<8>(depth);
    case 1:
      return frame<24>(depth);
    case 2:
      return frame<40>(depth);
    case 3:
      return frame<56>(depth);
    case 4:
      return frame<72>(depth);
    case 5:
      return frame<88>(depth);
    case 6:
      return frame<104>(depth);
    default:
      return frame<120>(depth);
  }
}

// Makes `events` of them, DEPTH functions deep.
inline void make(char pattern, unsigned depth, std::uint64_t events) {
  g_pattern = pattern;
  g_depth = depth;
  g_events = events;
  while (g_events > 0) descend(0);
}

}  // namespace descents
