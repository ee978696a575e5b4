// devices DRIVER WHAT CALLS: CPU time, in ns, of one cuMemAlloc_v2 and cuMemFree_v2 (WHAT: blocks),
// or of one dlsym lookup of a name that no driver has (WHAT: look-ups). DRIVER: a
// libcuda.so.1.
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cpu_time.h"

namespace {

void* g_driver = nullptr;

template <class Result, class... Arguments>
auto function(const char* name) {
  const auto found = reinterpret_cast<Result (*)(Arguments...)>(dlsym(g_driver, name));
  if (found == nullptr) std::abort();
  return found;
}

// Deep enough for a walk.
template <class Step>
[[gnu::noinline]] unsigned make(unsigned depth, std::uint64_t calls, const Step& step) {
  volatile char padding[40];
  padding[0] = static_cast<char>(depth);
  unsigned levels = 0;
  if (depth > 0)
    levels = make(depth - 1, calls, step);
  else
    for (std::uint64_t i = 0; i < calls; ++i) step();
  return levels + static_cast<unsigned>(padding[0] >= 0);
}

template <class Step>
void measure(std::uint64_t calls, const Step& step) {
  make(20, calls / 8, step);
  const double began = cpu_ns();
  make(20, calls, step);
  print_figure((cpu_ns() - began) / static_cast<double>(calls));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  g_driver = dlopen(argv[1], RTLD_NOW);
  if (g_driver == nullptr) return 3;
  const std::uint64_t calls = std::strtoull(argv[3], nullptr, 10);
  if (argv[2] == std::string_view("look-ups")) {
    void* const library = dlopen(nullptr, RTLD_NOW);
    measure(calls, [&] {
      if (dlsym(library, "malloc") == nullptr) std::abort();
    });
    return 0;
  }
  void* context = nullptr;
  if (function<int, unsigned>("cuInit")(0) != 0 ||
      function<int, void**, int>("cuDevicePrimaryCtxRetain")(&context, 0) != 0 ||
      function<int, void*>("cuCtxSetCurrent")(context) != 0)
    return 4;
  const auto allocate = function<int, std::uint64_t*, std::size_t>("cuMemAlloc_v2");
  const auto release = function<int, std::uint64_t>("cuMemFree_v2");
  measure(calls, [&] {
    std::uint64_t block = 0;
    if (allocate(&block, 65536) != 0 || release(block) != 0) std::abort();
  });
}
