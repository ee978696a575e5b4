// Tries all of CUDA's table, found in one of three ways: OOMREC_TEST_WAY is links, dlsym or
// resolver.
#include "tests/gpu/cuda_client.h"

#include <stdlib.h>

#include <string_view>

#include "tests/gpu/trial.h"

namespace oomrec::gpu_trial {

Cuda f;
OtherCuda other;

#define X(name, ...) extern "C" void trial_##name();
OOMREC_CUDA_FUNCTIONS(X)
#undef X

namespace {

constexpr Row kRows[] = {
#define X(name, base, ...) {#name, Api::base, trial_##name},
    OOMREC_CUDA_FUNCTIONS(X)
#undef X
};

// Resolves a base name, at its version and for its default stream.
template <class Function>
void ask(const char* name, const char* base, Function& to) {
  constexpr int kVersions[] = {2000,  2010,  3020,  4000,  5000,  5050,  6000,  6050,  7000,
                               10000, 10020, 11000, 11010, 11020, 11030, 11040, 12000, 12010,
                               12020, 12030, 12040, 12050, 13000, 13010, 13020};
  const auto wanted = reinterpret_cast<void*>(to);
  for (const int version : kVersions) {
    for (const cuuint64_t flags : {0u, 2u}) {
      void* found = nullptr;
      int status = -1;
      REQUIRE(f.cuGetProcAddress_v2(base, &found, version, flags, &status) == 0);
      if (found == wanted && status == 0) {
        to = reinterpret_cast<Function>(found);
        return;
      }
    }
  }
  FAIL(name);
}

void reach(void* library, std::string_view way) {
  if (way == "links") return reach_by_links();
#define X(name, ...) look_up(library, #name, f.name);
  OOMREC_CUDA_FUNCTIONS(X)
#undef X
  if (way == "dlsym") return;
  REQUIRE(way == "resolver");
#define X(name, base, ...) ask(#name, #base, f.name);
  OOMREC_CUDA_FUNCTIONS(X)
#undef X
}

}  // namespace

TEST_CASE("each function of the table: size, space, device and stack, also of a failure") {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const char* const way = getenv("OOMREC_TEST_WAY");
  REQUIRE(way != nullptr);
  reach(library, way);
#define X(name, parameters) look_up(library, #name, other.name);
  OTHER_CUDA_FUNCTIONS(X)
#undef X
  look_up(library, "fake_gpu_fail", g_fail);

  CUcontext context = nullptr;
  need(other.cuInit(0));
  need(f.cuDevicePrimaryCtxRetain(&context, kOrdinal));
  need(other.cuCtxSetCurrent(context));
  try_all(kRows, {Space::cuda, Space::cuda_host, Space::cuda_va});
}

}  // namespace oomrec::gpu_trial
