// Tries all of a driver's table, found in one of three ways: OOMREC_TEST_WAY is links, dlsym or
// resolver. Compiled for each vendor, with CLIENT_HIP for HIP; CLIENT_LINKS: linked with the
// driver.
#ifdef CLIENT_HIP
#include "tests/gpu/hip_client.h"
#else
#include "tests/gpu/cuda_client.h"
#endif

#include <stdlib.h>

#include <initializer_list>
#include <string_view>

#include "tests/gpu/trial.h"

#ifdef CLIENT_LINKS
namespace oomrec::gpu_trial::linked {
#define X(name, base, parameters, ...) extern "C" Result name parameters;
CLIENT_FUNCTIONS(X)
#undef X
}  // namespace oomrec::gpu_trial::linked
#endif

namespace oomrec::gpu_trial {

Functions f;
OtherFunctions other;

#define X(name, ...) extern "C" void trial_##name();
CLIENT_FUNCTIONS(X)
#undef X

namespace {

constexpr Row kRows[] = {
#define X(name, base, ...) {#name, Api::base, trial_##name},
    CLIENT_FUNCTIONS(X)
#undef X
};

// What is the vendor's: the resolver, by base name and default stream; the driver; its start.
#ifdef CLIENT_HIP

[[maybe_unused]] bool resolves_to(const char* base, std::uint64_t flags, const void* wanted) {
  void* found = nullptr;
  int status = -1;
  REQUIRE(f.hipGetProcAddress(base, &found, 60300000, flags, &status) == 0);
  return found == wanted && status == 0;
}

constexpr std::initializer_list<Space> kSpaces{Space::hip, Space::hip_host, Space::hip_va};

void start() { need(other.hipSetDevice(kOrdinal)); }

#else

[[maybe_unused]] bool resolves_to(const char* base, std::uint64_t flags, const void* wanted) {
  constexpr int kVersions[] = {2000,  2010,  3020,  4000,  5000,  5050,  6000,  6050,  7000,
                               10000, 10020, 11000, 11010, 11020, 11030, 11040, 12000, 12010,
                               12020, 12030, 12040, 12050, 13000, 13010, 13020};
  for (const int version : kVersions) {
    void* found = nullptr;
    int status = -1;
    REQUIRE(f.cuGetProcAddress_v2(base, &found, version, flags, &status) == 0);
    if (found == wanted && status == 0) return true;
  }
  return false;
}

constexpr std::initializer_list<Space> kSpaces{Space::cuda, Space::cuda_host, Space::cuda_va};

void start() {
  CUcontext context = nullptr;
  need(other.cuInit(0));
  need(f.cuDevicePrimaryCtxRetain(&context, kOrdinal));
  need(other.cuCtxSetCurrent(context));
}

#endif

#ifdef CLIENT_LINKS

void reach(void*, std::string_view way) {
  REQUIRE(way == "links");
#define X(name, ...) f.name = linked::name;
  CLIENT_FUNCTIONS(X)
#undef X
}

#else

void ask(const char* name, const char* base, const void* wanted) {
  if (!resolves_to(base, 0, wanted) && !resolves_to(base, 2, wanted)) FAIL(name);
}

void reach(void* library, std::string_view way) {
#define X(name, ...) look_up(library, #name, f.name);
  CLIENT_FUNCTIONS(X)
#undef X
  if (way == "dlsym") return;
  REQUIRE(way == "resolver");
#define X(name, base, ...) ask(#name, #base, reinterpret_cast<const void*>(f.name));
  CLIENT_FUNCTIONS(X)
#undef X
}

#endif

}  // namespace

TEST_CASE("each function of the table: size, space, device and stack, also of a failure") {
  void* const library = dlopen(kDriver, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const char* const way = getenv("OOMREC_TEST_WAY");
  REQUIRE(way != nullptr);
  reach(library, way);
#define X(name, parameters) look_up(library, #name, other.name);
  CLIENT_OTHER_FUNCTIONS(X)
#undef X
  look_up(library, "fake_gpu_fail", g_fail);
  start();
  try_all(kRows, kSpaces);
}

}  // namespace oomrec::gpu_trial
