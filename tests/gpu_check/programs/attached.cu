// Uses the device by CUDA's runtime, and allocates more when it is told, as a program that
// `oomrec attach` comes to.
#include <cstdio>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

static std::vector<void*> held;

static void take(size_t bytes) {
  void* block = nullptr;
  if (cudaMalloc(&block, bytes) == cudaSuccess) held.push_back(block);
}

static void fill() {
  for (int i = 0; i < 4; ++i) take(256u << 20);
}

int main() {
  take(128u << 20);
  std::printf("{\"ready\": true}\n");
  std::fflush(stdout);
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    if (std::strcmp(line, "fill\n") == 0) fill();
    if (std::strcmp(line, "free\n") == 0) {
      cudaFree(held.front());
      held.erase(held.begin());
    }
    std::printf("{\"held\": %zu}\n", held.size());
    std::fflush(stdout);
  }
  return 0;
}
