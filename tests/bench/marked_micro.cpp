// marked_micro PATTERN DEPTH PAIRS: the pairs of micro.cpp between two SIGSTOPs, again and again,
// for count_steps.
#include <csignal>
#include <cstdint>
#include <cstdlib>

#include "descents.h"

inline void descents::event(std::size_t bytes) {
  void* volatile block = std::malloc(bytes);
  std::free(block);
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const char pattern = argv[1][0];
  const auto depth = static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10));
  const std::uint64_t pairs = std::strtoull(argv[3], nullptr, 10);
  constexpr int kRounds = 40;
  descents::make(pattern, depth, pairs * kRounds);  // fills the caches
  for (int round = 0; round != kRounds; ++round) {
    std::raise(SIGSTOP);
    descents::make(pattern, depth, pairs);
    std::raise(SIGSTOP);
  }
}
