// micro PATTERN DEPTH PAIRS [ROUNDS]: CPU time of one malloc and free, in ns, made DEPTH functions
// deep, on a stack that changes from pair to pair by a pattern of descents.h. With ROUNDS it makes
// that many times PAIRS, each time between two SIGSTOPs, for count_steps.
#include <csignal>
#include <cstdint>
#include <cstdlib>

#include "cpu_time.h"
#include "descents.h"

inline void descents::event(std::size_t bytes) {
  void* volatile block = std::malloc(bytes);
  std::free(block);
}

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  const char pattern = argv[1][0];
  const auto depth = static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10));
  const std::uint64_t pairs = std::strtoull(argv[3], nullptr, 10);
  if (argc == 5) {
    const std::uint64_t rounds = std::strtoull(argv[4], nullptr, 10);
    descents::make(pattern, depth, 20'000);  // fills the caches
    for (std::uint64_t round = 0; round != rounds; ++round) {
      std::raise(SIGSTOP);
      descents::make(pattern, depth, pairs);
      std::raise(SIGSTOP);
    }
    return 0;
  }
  descents::make(pattern, depth, pairs / 8);  // start-up, which is measured elsewhere
  const double began = cpu_ns();
  descents::make(pattern, depth, pairs);
  print_figure((cpu_ns() - began) / static_cast<double>(pairs));
}
