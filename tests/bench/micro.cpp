// micro PATTERN DEPTH PAIRS: CPU time of one malloc and free, in ns, made DEPTH functions deep.
//
// The functions have eight frame sizes and no frame pointer. Between two pairs the stack changes:
//   a  only its innermost frame does;
//   b  up to DEPTH/2 frames return, and others are called in their place;
//   c  all of them do (no real program is like it: the bound for whatever reuses the last stack).
// The paths are taken from a set of four, so that stacks recur as they do in programs.
#include <cstdint>
#include <cstdlib>

#include "cpu_time.h"

namespace {

char g_pattern;
unsigned g_depth;
std::uint64_t g_pairs;  // still to do
unsigned g_resume;      // the depth to which the stack is taken down after a pair
unsigned g_path;        // 0…3: the functions that are called on the way down again
std::uint64_t g_random = 1;
volatile unsigned g_sink;

unsigned random_below(unsigned bound) {
  g_random ^= g_random << 13;
  g_random ^= g_random >> 7;
  g_random ^= g_random << 17;
  return static_cast<unsigned>(g_random >> 33) % bound;
}

[[gnu::noinline]] void odd_pair(std::size_t bytes) {
  void* volatile block = std::malloc(bytes);
  std::free(block);
  g_sink = g_sink + 1;
}

[[gnu::noinline]] void even_pair(std::size_t bytes) {
  void* volatile block = std::malloc(bytes + 1);
  std::free(block);
  g_sink = g_sink + 2;
}

[[gnu::noinline]] void innermost() {
  do {
    const std::size_t bytes = 48 + g_pairs % 64;
    if (g_pairs % 2 != 0) {
      odd_pair(bytes);
    } else {
      even_pair(bytes);
    }
  } while (--g_pairs > 0 && g_pattern == 'a');
  g_resume = g_pattern == 'b' ? g_depth - 1 - random_below(g_depth / 2) : 0;
  g_path = random_below(4);
}

void descend(unsigned depth);

// Calls deeper functions until the stack is to be taken down further than to here.
template <unsigned kPadding>
[[gnu::noinline]] void frame(unsigned depth) {
  volatile char padding[kPadding];
  padding[0] = static_cast<char>(depth);
  do {
    descend(depth + 1);
  } while (g_pairs > 0 && g_resume == depth);
  g_sink = g_sink + static_cast<unsigned>(padding[0]);
}

void descend(unsigned depth) {
  if (depth == g_depth) return innermost();
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

double pair_ns(std::uint64_t pairs) {
  g_pairs = pairs;
  const double began = cpu_ns();
  while (g_pairs > 0) descend(0);
  return (cpu_ns() - began) / static_cast<double>(pairs);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  g_pattern = argv[1][0];
  g_depth = static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10));
  const std::uint64_t pairs = std::strtoull(argv[3], nullptr, 10);
  pair_ns(pairs / 8);  // what is done once is start-up, which is measured elsewhere
  print_figure(pair_ns(pairs));
}
