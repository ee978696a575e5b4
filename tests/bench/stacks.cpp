// stacks LEVELS [COUNT]: a block from each of COUNT (2^LEVELS) distinct stacks, all of them live at
// the end, when the program requests too much: a recording for the commands to read.
// Prints how long that last call took, in ms.
//
// At each level one of two functions is called, each from a separate line, below ten common frames,
// like a program's main loop.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr unsigned kCommonFrames = 10;

unsigned g_levels;
std::uint32_t g_count;
volatile unsigned g_sink;
void* volatile g_block;

void left(unsigned level, std::uint32_t path);
void right(unsigned level, std::uint32_t path);

[[gnu::noinline]] void allocate(std::uint32_t path) { g_block = std::malloc(17 + path % 400); }

void descend(unsigned level, std::uint32_t path) {
  if (level == g_levels) return allocate(path);
  if (path >> level & 1) return left(level + 1, path);
  right(level + 1, path);
}

[[gnu::noinline]] void left(unsigned level, std::uint32_t path) {
  descend(level, path);
  g_sink = g_sink + 1;
}

[[gnu::noinline]] void right(unsigned level, std::uint32_t path) {
  descend(level, path);
  g_sink = g_sink + 2;
}

[[gnu::noinline]] void common(unsigned frames) {
  if (frames > 0) {
    common(frames - 1);
  } else {
    for (std::uint32_t path = 0; path < g_count; ++path) descend(0, path);
  }
  g_sink = g_sink + 3;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  g_levels = static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10));
  g_count = std::uint32_t{1} << g_levels;
  if (argc > 2) g_count = static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10));
  common(kCommonFrames);
  const auto began = std::chrono::steady_clock::now();
  g_block = std::malloc(std::size_t{1} << 46);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
  std::printf("figure: %.3f\n", took.count());
  return g_block == nullptr ? 0 : 1;
}
