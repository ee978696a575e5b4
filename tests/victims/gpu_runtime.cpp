// Uses the CUDA driver like CUDA's runtime: opens it, looks up cuGetProcAddress_v2, and resolves by
// it the resolver itself in both forms and every other name at the version that introduced it, for
// both kinds of default stream. Then it allocates by each function that it found.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "tests/fake_gpu/core/both_rows.h"
#include "tests/fake_gpu/cuda/context_rows.h"
#include "tests/fake_gpu/cuda/memory_rows.h"
#include "tests/fake_gpu/cuda/stream_rows.h"
#include "tests/victims/marks.h"

namespace {

using Resolve = int (*)(const char*, void**, int, std::uint64_t, int*);

struct Name {
  const char* exported;
  int since;
};
#define DRIVER(name) cu##name
#define SINCE(version) version
#define TEXT(name) #name
#define X(name, since, ...) {TEXT(name), since},
#define FAKE_CUDA_PTSZ(X, name, since, ...) X(name, since)
#define FAKE_CUDA_PTDS(X, name, since, ...) X(name, since)
constexpr Name kNames[] = {FAKE_BOTH_ROWS(X) FAKE_CUDA_CONTEXT_ROWS(X) FAKE_CUDA_MEMORY_ROWS(X)
                               FAKE_CUDA_STREAM_ROWS(X)};
#undef X

std::string base_of(std::string name) {
  for (const char* suffix : {"_ptsz", "_ptds", "_v2", "_v3", "_v4"}) {
    const std::size_t at = name.rfind(suffix);
    if (at != std::string::npos && at + std::string{suffix}.size() == name.size()) name.resize(at);
  }
  return name;
}

std::map<std::pair<std::string, std::uint64_t>, void*> found;

template <class... Arguments>
int call(const char* name, std::uint64_t flags, Arguments... arguments) {
  const auto function = reinterpret_cast<int (*)(Arguments...)>(found.at({name, flags}));
  const int result = function(arguments...);
  std::printf("%s, flags %d: %d\n", name, static_cast<int>(flags), result);
  return result;
}

}  // namespace

int main() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  void* const first = library != nullptr ? dlsym(library, "cuGetProcAddress_v2") : nullptr;
  if (first == nullptr) return 2;
  const auto ask = reinterpret_cast<Resolve>(first);
  void *older = nullptr, *newer = nullptr;
  int status = -1;
  std::printf("%d ", ask("cuGetProcAddress", &older, 11030, 0, &status));
  std::printf("%d ", ask("cuGetProcAddress", &newer, 12000, 0, &status));
  std::printf("%d\n", status);

  unsigned missing = 0;
  for (const Name& name : kNames) {
    for (const std::uint64_t flags : {0U, 2U}) {
      void* function = nullptr;
      const std::string base = base_of(name.exported);
      const int result =
          reinterpret_cast<Resolve>(newer)(base.c_str(), &function, name.since, flags, &status);
      if (result != 0) return 3;
      if (function == nullptr) ++missing;
      found[{base, flags}] = function;
    }
  }
  std::printf("names %zu, missing %u\n", found.size(), missing);

  void* context = nullptr;
  std::uint64_t block = 0;
  void* host = nullptr;
  call("cuInit", 0, 0U);
  call("cuDevicePrimaryCtxRetain", 0, &context, 0);
  call("cuCtxSetCurrent", 0, context);
  for (const std::uint64_t flags : {0U, 2U}) {
    call("cuMemAlloc", flags, &block, std::size_t{1} << 20);
    call("cuMemFree", flags, block);
    call("cuMemAlloc", flags, &block, std::size_t{2} << 20);
    call("cuMemAllocManaged", flags, &block, std::size_t{3} << 20, 1U);
    call("cuMemAllocHost", flags, &host, std::size_t{4} << 20);
    call("cuMemAllocAsync", flags, &block, std::size_t{5} << 20, static_cast<void*>(nullptr));
  }
  mark("allocated");
  return 0;
}
