// live_blocks LIVE PAIRS: CPU time of one free and malloc, in ns, among LIVE blocks: a block chosen
// at random is freed and replaced by another, so that no table of blocks stays in the CPU cache.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "cpu_time.h"

namespace {

std::uint64_t g_random = 1;

std::uint64_t next_random() {
  g_random ^= g_random << 13;
  g_random ^= g_random >> 7;
  g_random ^= g_random << 17;
  return g_random;
}

[[gnu::noinline]] void* make() {
  void* volatile block = std::malloc(32 + next_random() % 96);
  return block;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::vector<void*> blocks(std::strtoull(argv[1], nullptr, 10));
  const std::uint64_t pairs = std::strtoull(argv[2], nullptr, 10);
  for (void*& block : blocks) block = make();
  const double began = cpu_ns();
  for (std::uint64_t i = 0; i < pairs; ++i) {
    void*& block = blocks[next_random() % blocks.size()];
    std::free(block);
    block = make();
  }
  print_figure((cpu_ns() - began) / static_cast<double>(pairs));
}
